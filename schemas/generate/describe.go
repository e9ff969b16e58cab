package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"go/token"
	"slices"
	"strings"
)

// Kind and apiVersion, which no type lists as its fields.
var typeMeta = typeName{"k8s.io/apimachinery/pkg/apis/meta/v1", "TypeMeta"}

// commentAbove is the text of the comment that ends right above a line.
func (s *source) commentAbove(at token.Pos) string {
	if group := s.comments[s.position(at)-1]; group != nil {
		return group.Text()
	}
	return ""
}

// describe is a line for all that the types that were reached say of themselves, sorted.
func (u *universe) describe(reached map[typeName]*goType) []byte {
	names := []typeName{typeMeta}
	for name := range reached {
		if name != typeMeta {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b typeName) int {
		return cmp.Or(cmp.Compare(shortName(a.path), shortName(b.path)), cmp.Compare(a.name, b.name))
	})
	var out bytes.Buffer
	for _, of := range names {
		found, name := u.packages[of.path].types[of.name], shortName(of.path)+"."+of.name
		describeLine(&out, name, found.comment)
		for _, field := range found.fields {
			if !field.isInline() {
				describeLine(&out, name+"."+field.jsonName(), field.comment)
			}
		}
	}
	return out.Bytes()
}

// pack makes the same gzip of the same text each time.
func pack(text []byte) ([]byte, error) {
	var out bytes.Buffer
	packer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := packer.Write(text); err != nil {
		return nil, err
	}
	if err := packer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func describeLine(out *bytes.Buffer, name, comment string) {
	if text := description(comment); text != "" {
		text = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", "").Replace(text)
		fmt.Fprintf(out, "%s: %s\n", name, text)
	}
}

// description is what a comment says to people, as Kubernetes publishes it: lines that speak to generators are left out, those
// of a paragraph are joined, and those that begin with a space stay apart.
func description(comment string) string {
	var out []byte
	dropLast := func() { out = out[:max(len(out)-1, 0)] }
	for line := range strings.SplitSeq(comment, "\n") {
		if line == "---" {
			break
		}
		line = strings.TrimRight(line, " ")
		leading := strings.TrimLeft(line, " ")
		switch {
		case line == "":
			dropLast()
			out = append(out, "\n\n"...)
		case strings.HasPrefix(leading, "TODO"), strings.HasPrefix(leading, "+"):
		case line[0] == ' ', line[0] == '\t':
			dropLast()
			out = append(out, "\n"+line+"\n"...)
		default:
			out = append(out, line+" "...)
		}
	}
	return strings.TrimSpace(string(out))
}
