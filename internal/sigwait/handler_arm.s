#include "textflag.h"

// handler(sig R0): pending[sig] = 1; write(wakefd, &one, 8).
// Called by the kernel on the thread's signal stack with every signal blocked;
// R14 is the kernel's sigreturn, which restores all registers.
TEXT ·handler(SB),NOSPLIT|NOFRAME,$0
	MOVW	$·pending(SB), R1
	ADD	R0<<2, R1
	MOVW	$1, R2
	MOVW	R2, (R1)
	MOVW	·wakefd(SB), R0
	MOVW	$·one(SB), R1
	MOVW	$8, R2
	MOVW	$4, R7 // write
	SWI	$0
	RET

TEXT ·handlerPC(SB),NOSPLIT,$0-4
	MOVW	$·handler(SB), R0
	MOVW	R0, ret+0(FP)
	RET

// faultHandler(sig R0, info R1, context R2): what a process has sent is recorded
// like any other signal, a fault of this process is the runtime's.
TEXT ·faultHandler(SB),NOSPLIT|NOFRAME,$0
	MOVW	8(R1), R12 // si_code
	CMP	$0, R12
	BLE	sent
	CMP	$31, R0 // SIGSYS
	BEQ	drop
	MOVW	·runtimeHandler(SB), R12
	JMP	(R12)
drop:
	RET
sent:
	JMP	·handler(SB)

TEXT ·faultHandlerPC(SB),NOSPLIT,$0-4
	MOVW	$·faultHandler(SB), R0
	MOVW	R0, ret+0(FP)
	RET
