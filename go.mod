module github.com/fosterinit/foster

go 1.26.0

require (
	github.com/caarlos0/env/v11 v11.4.2
	github.com/lmittmann/tint v1.2.1
	github.com/moby/sys/user v0.5.0
	golang.org/x/sys v0.50.0
)

require github.com/kballard/go-shellquote v0.0.0-20180428030007-95032a82bc51

require gopkg.in/yaml.v3 v3.0.1
