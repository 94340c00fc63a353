# docker build -t foster .
#
# The result holds one static file, /foster: copy it into an image of your own (see README.md), or run it as it is.

# An ARG, so that a mirror or a locally made image can take the place of Docker Hub's.
ARG GO_IMAGE=golang:1.26

# The compiler runs on the builder's own platform and cross-compiles: emulating it for another one would take minutes.
# ":-linux" is for builders that set no BUILDPLATFORM (Docker's before BuildKit): they refuse an empty platform, and "linux"
# alone stands for their own architecture.
FROM --platform=${BUILDPLATFORM:-linux} ${GO_IMAGE} AS build
WORKDIR /src

# Modules first: this layer lasts until go.mod or go.sum change.
COPY go.mod go.sum ./
RUN go mod download

COPY . .
# Set by BuildKit from --platform; empty means the builder's own, to `go build` as well.
ARG TARGETOS TARGETARCH TARGETVARIANT
# CGO_ENABLED=0: a static binary, for images without a libc. GOARM is the digit of "v6" or "v7", and empty elsewhere.
# -trimpath, -buildvcs=false: the same bytes from any directory, with or without .git. -s -w: no symbols, a third smaller.
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} GOARM=${TARGETVARIANT#v} \
    go build -trimpath -buildvcs=false -ldflags='-s -w' -o /foster ./cmd/foster

# Nothing but foster: no shell, no libc, no user database, so nothing else to patch.
FROM scratch
COPY --from=build /foster /foster
# "--" so that an option of the command's is never taken for one of foster's.
# There is no USER: foster needs no root, but which uid is right only the image that copies it can know.
ENTRYPOINT ["/foster", "--"]
