package sigwait

type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr // the vDSO's is used
	mask     uint64
}

func newSigaction(handler uintptr) sigaction {
	return sigaction{handler: handler, flags: saSiginfo | saOnStack | saRestart, mask: ^uint64(0)}
}
