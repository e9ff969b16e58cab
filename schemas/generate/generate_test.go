package main

import (
	"os"
	"path/filepath"
	"testing"
)

// made is the file of the package example.com/api/toys/v1 whose source is given; others can be beside it.
func made(t *testing.T, source string, others map[string]string) string {
	t.Helper()
	root := t.TempDir()
	put := func(folder, text string) {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, folder, "types.go"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("toys/v1", "package v1\n"+source)
	for folder, text := range others {
		put(folder, text)
	}
	universe := newUniverse([]module{{Path: "example.com/api", Version: "v1.2.3", Dir: root}})
	if _, err := universe.load("example.com/api/toys/v1"); err != nil {
		t.Fatal(err)
	}
	reached, err := universe.reach()
	if err != nil {
		t.Fatal(err)
	}
	files, err := universe.print(reached)
	if err != nil {
		t.Fatal(err)
	}
	return string(files["toys.v1.txt"])
}

func check(t *testing.T, got, want string) {
	t.Helper()
	want = "# example.com/api/toys/v1, v1.2.3; made by schemas/generate\n" + want
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAKindIsListedWithWhatItIsMadeOf(t *testing.T) {
	check(t, made(t, `
import meta "example.com/api/meta/v1"

// +genclient
// +genclient:nonNamespaced
// +k8s:prerelease-lifecycle-gen:introduced=1.30

// A Toy is played with.
type Toy struct {
	meta.TypeMeta   `+"`json:\"\"`"+`
	// +optional
	meta.ObjectMeta `+"`json:\"metadata,omitempty\" protobuf:\"bytes,1,opt,name=metadata\"`"+`
	Spec ToySpec `+"`json:\"spec\" protobuf:\"bytes,2,opt,name=spec\"`"+`
}

type ToyList struct {
	meta.TypeMeta `+"`json:\",inline\"`"+`
	Items []Toy `+"`json:\"items\" protobuf:\"bytes,2,rep,name=items\"`"+`
}

type ToySpec struct {
	ToySource `+"`json:\"\" protobuf:\"bytes,1,req\"`"+`
	// +required
	// +listType=map
	// +listMapKey=name
	// +listMapKey=side
	// +k8s:alpha(since: "1.37")=+k8s:maxItems=3
	Parts []map[string]*Part `+"`json:\"parts,omitempty,omitzero\" protobuf:\"bytes,2,rep,name=pieces\" patchStrategy:\"merge\" patchMergeKey:\"name\"`"+`
	hidden string
}

type ToySource struct{}
type Part []byte
type Unreached struct{}
`, map[string]string{"meta/v1": "package v1\ntype TypeMeta struct{}\ntype ObjectMeta struct{}"}),
		`type Part []byte
type Toy object list=ToyList cluster introduced=1.30
	metadata meta.v1.ObjectMeta 1 omitempty optional go=ObjectMeta
	spec ToySpec 2
type ToyList object
	items []Toy 2
type ToySource
type ToySpec
	- ToySource 1 inline go=ToySource proto=toySource
	parts []map[string]*Part 2 omitempty omitzero required proto=pieces patch=merge key=name list=map(name,side) `+
			`+k8s:alpha(since:%20"1.37")=+k8s:maxItems=3
`)
}

func TestValuesOfAStringTypeAreListedWhereItIsAnEnumeration(t *testing.T) {
	check(t, made(t, `
import "example.com/api/colours"

type Toy struct {
	TypeMeta
	// +default=ref(Red)
	Colour Colour
	Shape Shape
	Other Other
}

// +enum
type Colour string

// +k8s:enum
type Shape string

type Other string

const (
	Red Colour = "red"
	Deep = Colour(colours.Deep)
	Same Colour = Red
	Round Shape = "round"
	Any Other = "any"
)
`, map[string]string{"colours": "package colours\nconst Deep = `deep, blue`"}),
		`type Colour string enum=red,deep%2C%20blue
type Other string
type Shape string values=round +k8s:enum
type Toy object
	Colour Colour - default="red"
	Shape Shape -
	Other Other -
`)
}

func TestATypeTellsWhatItDoesItself(t *testing.T) {
	check(t, made(t, `
type Toy struct {
	TypeMeta
	Size Size
	Open *Open
	Names Names
	At Time
}

// +protobuf.embed=string
type Size struct { Value int }
func (s *Size) UnmarshalJSON(text []byte) error { return nil }
func (Size) OpenAPISchemaType() []string { return []string{"string"} }
func (Size) OpenAPISchemaFormat() string { return "size" }
func (Size) OpenAPIV3OneOfTypes() []string { return []string{"integer", "string"} }

type Open struct {
	Raw []byte `+"`json:\"-\" protobuf:\"bytes,1,opt,name=raw\"`"+`
	Made any `+"`json:\"-\"`"+`
}
func (Open) OpenAPISchemaType() []string { return nil }

// +protobuf.nullable=true
type Names []string

// +protobuf.as=Stamp
type Time struct {
	Inner `+"`protobuf:\"-\"`"+`
}
`, nil),
		`type Names []string message
type Open schema=any
	- []byte 1 go=Raw proto=raw
type Size own schema=string:size oneof=integer,string
	- string 1 proto=string
type Time as=Stamp
type Toy object
	Size Size -
	Open *Open -
	Names Names -
	At Time -
`)
}
