#include "textflag.h"

// handler(sig DI): pending[sig] = 1; write(wakefd, &one, 8).
// Called by the kernel on the thread's signal stack with every signal blocked.
// rt_sigreturn restores all registers, so none is saved here.
TEXT ·handler(SB),NOSPLIT|NOFRAME,$0
	MOVL	DI, DI
	LEAQ	·pending(SB), AX
	MOVL	$1, (AX)(DI*4)
	MOVL	·wakefd(SB), DI
	LEAQ	·one(SB), SI
	MOVL	$8, DX
	MOVL	$1, AX // write
	SYSCALL
	RET

// faultHandler(sig DI, info SI, context DX): what a process has sent is recorded
// like any other signal, a fault of this process is the runtime's.
TEXT ·faultHandler(SB),NOSPLIT|NOFRAME,$0
	MOVL	8(SI), AX // si_code
	CMPL	AX, $0
	JLE	sent
	CMPL	DI, $31 // SIGSYS
	JEQ	drop
	MOVQ	·runtimeHandler(SB), AX
	JMP	AX
drop:
	RET
sent:
	JMP	·handler(SB)

TEXT ·restorer(SB),NOSPLIT|NOFRAME,$0
	MOVL	$15, AX // rt_sigreturn
	SYSCALL
	INT	$3

TEXT ·handlerPC(SB),NOSPLIT,$0-8
	LEAQ	·handler(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

TEXT ·faultHandlerPC(SB),NOSPLIT,$0-8
	LEAQ	·faultHandler(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

TEXT ·restorerPC(SB),NOSPLIT,$0-8
	LEAQ	·restorer(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
