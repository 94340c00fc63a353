#include "textflag.h"

// handler(sig R0): pending[sig] = 1; write(wakefd, &one, 8).
// Called by the kernel on the thread's signal stack with every signal blocked;
// R30 is the vDSO's sigreturn, which restores all registers.
TEXT ·handler(SB),NOSPLIT|NOFRAME,$0
	MOVW	R0, R0
	MOVD	$·pending(SB), R1
	ADD	R0<<2, R1, R1
	MOVD	$1, R2
	MOVW	R2, (R1)
	MOVW	·wakefd(SB), R0
	MOVD	$·one(SB), R1
	MOVD	$8, R2
	MOVD	$64, R8 // write
	SVC
	RET

TEXT ·handlerPC(SB),NOSPLIT,$0-8
	MOVD	$·handler(SB), R0
	MOVD	R0, ret+0(FP)
	RET

// faultHandler(sig R0, info R1, context R2): what a process has sent is recorded
// like any other signal, a fault of this process is the runtime's.
TEXT ·faultHandler(SB),NOSPLIT|NOFRAME,$0
	MOVW	8(R1), R9 // si_code
	CMPW	$0, R9
	BLE	sent
	CMPW	$31, R0 // SIGSYS
	BEQ	drop
	MOVD	·runtimeHandler(SB), R9
	JMP	(R9)
drop:
	RET
sent:
	JMP	·handler(SB)

TEXT ·faultHandlerPC(SB),NOSPLIT,$0-8
	MOVD	$·faultHandler(SB), R0
	MOVD	R0, ret+0(FP)
	RET
