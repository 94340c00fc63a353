package sigwait

type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

func restorerPC() uintptr

func newSigaction(handler uintptr) sigaction {
	return sigaction{handler: handler, flags: saSiginfo | saOnStack | saRestart | saRestorer, restorer: restorerPC(), mask: ^uint64(0)}
}
