package sigwait

type sigaction struct {
	handler  uintptr
	flags    uint32
	restorer uintptr // the kernel's own page is used
	mask     [2]uint32
}

func newSigaction(handler uintptr) sigaction {
	return sigaction{handler: handler, flags: saSiginfo | saOnStack | saRestart, mask: [2]uint32{^uint32(0), ^uint32(0)}}
}
