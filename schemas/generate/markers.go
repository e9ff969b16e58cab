package main

import (
	"go/ast"
	"go/token"
	"strings"
)

// The lines of a comment that speak to generators, `+name=value`, in their order and without the plus sign.
type markers []string

// markersAbove reads the comment that ends right above a line.
func (s *source) markersAbove(at token.Pos) markers {
	return readMarkers(s.comments[s.position(at)-1])
}

// typeMarkers reads the comment above a type and the one that ends an empty line before, as Kubernetes' generators do.
func (s *source) typeMarkers(at token.Pos) markers {
	line := s.position(at)
	above := s.comments[line-1]
	if above != nil {
		line = s.position(above.Pos())
	}
	return append(readMarkers(s.comments[line-2]), readMarkers(above)...)
}

func readMarkers(comment *ast.CommentGroup) markers {
	if comment == nil {
		return nil
	}
	var found markers
	for line := range strings.SplitSeq(comment.Text(), "\n") {
		if marker, ok := strings.CutPrefix(strings.TrimSpace(line), "+"); ok {
			found = append(found, marker)
		}
	}
	return found
}

func (m markers) has(name string) bool {
	return len(m.values(name)) > 0
}

// value is that of the first marker with the name; empty if there is none, or none with a value.
func (m markers) value(name string) string {
	for _, value := range m.values(name) {
		return value
	}
	return ""
}

func (m markers) values(name string) []string {
	var found []string
	for _, marker := range m {
		if its, value, _ := strings.Cut(marker, "="); its == name {
			found = append(found, value)
		}
	}
	return found
}

// Markers of generators that make no difference to what a server answers.
var unheard = []string{
	"k8s:conversion-", "k8s:deepcopy-", "k8s:defaulter-", "k8s:openapi-", "k8s:prerelease-lifecycle-", "k8s:protobuf-",
	"k8s:register-", "k8s:validation-",
}

// validation is the declarative validation that is asked for, as `k8s:maxItems=3`.
func (m markers) validation() []string {
	var found []string
next:
	for _, marker := range m {
		if !strings.HasPrefix(marker, "k8s:") {
			continue
		}
		for _, prefix := range unheard {
			if strings.HasPrefix(marker, prefix) {
				continue next
			}
		}
		found = append(found, marker)
	}
	return found
}
