#include "textflag.h"

// handler(sig A0): pending[sig] = 1; write(wakefd, &one, 8).
// Called by the kernel on the thread's signal stack with every signal blocked;
// RA is the vDSO's sigreturn, which restores all registers.
TEXT ·handler(SB),NOSPLIT|NOFRAME,$0
	SLLI	$2, X10, X5
	MOV	$·pending(SB), X6
	ADD	X5, X6, X6
	MOV	$1, X7
	MOVW	X7, (X6)
	MOVW	·wakefd(SB), X10
	MOV	$·one(SB), X11
	MOV	$8, X12
	MOV	$64, X17 // write
	ECALL
	RET

TEXT ·handlerPC(SB),NOSPLIT,$0-8
	MOV	$·handler(SB), X5
	MOV	X5, ret+0(FP)
	RET

// faultHandler(sig A0, info A1, context A2): what a process has sent is recorded
// like any other signal, a fault of this process is the runtime's.
TEXT ·faultHandler(SB),NOSPLIT|NOFRAME,$0
	MOVW	8(X11), X5 // si_code
	BLE	X5, X0, sent
	MOV	$31, X5 // SIGSYS
	BEQ	X5, X10, drop
	MOV	·runtimeHandler(SB), X5
	JMP	(X5)
drop:
	RET
sent:
	JMP	·handler(SB)

TEXT ·faultHandlerPC(SB),NOSPLIT,$0-8
	MOV	$·faultHandler(SB), X5
	MOV	X5, ret+0(FP)
	RET
