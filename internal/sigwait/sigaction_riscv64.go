package sigwait

type sigaction struct {
	handler uintptr
	flags   uint64
	mask    uint64
}

func newSigaction(handler uintptr) sigaction {
	return sigaction{handler: handler, flags: saSiginfo | saOnStack | saRestart, mask: ^uint64(0)}
}
