package main

import (
	"go/ast"
	"reflect"
	"strconv"
	"strings"
)

// What the tag of a field says.
type tag struct {
	// Of JSON: empty where the tag has none, `-` where it is left out.
	name string
	// `omitempty`, `omitzero`.
	omit []string
	// Of protobuf; the number is empty where it has none.
	number, protoName string
	notInProtobuf     bool
	// Of strategic merge patches.
	patchStrategy, patchMergeKey string
}

func readTag(literal *ast.BasicLit) (tag, error) {
	if literal == nil {
		return tag{}, nil
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return tag{}, err
	}
	tags := reflect.StructTag(text)
	found := tag{patchStrategy: tags.Get("patchStrategy"), patchMergeKey: tags.Get("patchMergeKey")}
	name, options, _ := strings.Cut(tags.Get("json"), ",")
	found.name = name
	for option := range strings.SplitSeq(options, ",") {
		if strings.HasPrefix(option, "omit") {
			found.omit = append(found.omit, option)
		}
	}
	found.readProtobuf(tags.Get("protobuf"))
	return found, nil
}

// readProtobuf reads `bytes,1,opt,name=metadata`.
func (t *tag) readProtobuf(text string) {
	t.notInProtobuf = text == "-"
	parts := strings.Split(text, ",")
	if len(parts) < 2 {
		return
	}
	t.number = parts[1]
	for _, part := range parts[2:] {
		if name, ok := strings.CutPrefix(part, "name="); ok {
			t.protoName = name
		}
	}
}
