module kubeskiff/schemas/generate

go 1.26.0

// What is read: source, not imported, so `go mod tidy` would drop it.
require (
	k8s.io/api v0.37.2
	k8s.io/apiextensions-apiserver v0.37.2
	k8s.io/apimachinery v0.37.2
	k8s.io/kube-aggregator v0.37.2
)
