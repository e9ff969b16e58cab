package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// What is known of a package.
type goPackage struct {
	path    string
	version string
	// The API group of its kinds; nil for a package that has none.
	group *string
	types map[string]*goType
	// The string constants, in the order of the source.
	constants []*constant
}

// A type that has a name.
type goType struct {
	// Of a struct its fields; of another type what it is made of.
	isStruct bool
	isAlias  bool
	fields   []field
	is       goExpr
	// Whether it has kind and apiVersion.
	isObject bool
	markers  markers
	// Whether it reads or writes its JSON itself.
	ownJSON bool
	// What it says of its OpenAPI; nil where it says nothing.
	schemaType, schemaOneOf []string
	saysType                bool
	schemaFormat            string
}

// A field as the source has it.
type field struct {
	// Of the Go field.
	name     string
	embedded bool
	is       goExpr
	tag      tag
	markers  markers
}

// A source file, with what its import names stand for.
type source struct {
	file    *ast.File
	imports map[string]string
	// The comment that ends on a line.
	comments map[int]*ast.CommentGroup
	position func(token.Pos) int
	in       *goPackage
}

// readPackage reads the types of a folder, without what was generated and what is only for tests.
func readPackage(importPath, dir string) (*goPackage, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	in := &goPackage{path: importPath, types: map[string]*goType{}}
	var sources []*source
	for _, entry := range entries {
		name := entry.Name()
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if matches, err := build.Default.MatchFile(dir, name); err != nil || !matches {
			continue
		}
		found, err := readSource(in, filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if found != nil {
			sources = append(sources, found)
		}
	}
	return in, in.declare(sources)
}

// readSource is nil for a file that was generated.
func readSource(in *goPackage, file string) (*source, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(parsed) {
		return nil, err
	}
	found := &source{
		file:     parsed,
		imports:  map[string]string{},
		comments: map[int]*ast.CommentGroup{},
		position: func(at token.Pos) int { return files.Position(at).Line },
		in:       in,
	}
	for _, group := range parsed.Comments {
		found.comments[found.position(group.End())] = group
	}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		found.imports[name] = imported
	}
	return found, nil
}

// declare enters the types and constants, then the methods that say something about a type.
func (p *goPackage) declare(sources []*source) error {
	for _, source := range sources {
		for _, declaration := range source.file.Decls {
			if err := p.enter(source, declaration); err != nil {
				return fmt.Errorf("%s: %w", p.path, err)
			}
		}
	}
	for _, source := range sources {
		for _, declaration := range source.file.Decls {
			if method, ok := declaration.(*ast.FuncDecl); ok && method.Recv != nil {
				p.enterMethod(method)
			}
		}
	}
	return nil
}

func (p *goPackage) enter(source *source, declaration ast.Decl) error {
	general, ok := declaration.(*ast.GenDecl)
	if !ok {
		return nil
	}
	for _, spec := range general.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if !spec.Name.IsExported() || spec.TypeParams != nil {
				continue
			}
			at := spec.Pos()
			if !general.Lparen.IsValid() {
				at = general.Pos()
			}
			found, err := source.readType(spec, at)
			if err != nil {
				return fmt.Errorf("%s: %w", spec.Name.Name, err)
			}
			p.types[spec.Name.Name] = found
		case *ast.ValueSpec:
			if general.Tok == token.CONST {
				p.readGroup(spec)
				p.constants = append(p.constants, source.readConstants(spec)...)
			}
		}
	}
	return nil
}

// readGroup reads `const GroupName = "apps"`.
func (p *goPackage) readGroup(spec *ast.ValueSpec) {
	for i, name := range spec.Names {
		if name.Name != "GroupName" || i >= len(spec.Values) {
			continue
		}
		if literal, ok := spec.Values[i].(*ast.BasicLit); ok {
			if group, err := strconv.Unquote(literal.Value); err == nil {
				p.group = &group
			}
		}
	}
}

func (s *source) readType(spec *ast.TypeSpec, at token.Pos) (*goType, error) {
	found := &goType{isAlias: spec.Assign.IsValid(), markers: s.typeMarkers(at)}
	structure, isStruct := spec.Type.(*ast.StructType)
	if !isStruct {
		found.is = goExpr{s, spec.Type}
		return found, nil
	}
	found.isStruct = true
	if found.markers.has("protobuf.embed") {
		// The fields are its own affair.
		return found, nil
	}
	for _, member := range structure.Fields.List {
		fields, err := s.readField(member)
		if err != nil {
			return nil, err
		}
		for _, field := range fields {
			if field.isTypeMeta() && field.tag.number == "" {
				found.isObject = true
			} else if field.isExchanged() {
				found.fields = append(found.fields, field)
			}
		}
	}
	return found, nil
}

// readField reads a line of a struct: without names it is an embedded type.
func (s *source) readField(member *ast.Field) ([]field, error) {
	tag, err := readTag(member.Tag)
	if err != nil {
		return nil, err
	}
	read := field{is: goExpr{s, member.Type}, tag: tag, markers: s.markersAbove(member.Pos())}
	if len(member.Names) == 0 {
		read.name = read.is.lastName()
		read.embedded = true
		return []field{read}, nil
	}
	var fields []field
	for _, name := range member.Names {
		if name.IsExported() {
			read.name = name.Name
			fields = append(fields, read)
		}
	}
	return fields, nil
}

// isTypeMeta tells kind and apiVersion, as every object has them.
func (f field) isTypeMeta() bool {
	return f.isInline() && f.name == "TypeMeta"
}

// isInline tells a field whose own fields stand in its place in JSON.
func (f field) isInline() bool {
	return f.embedded && f.tag.name == ""
}

// jsonName is `-` for what is inline, and for what JSON has not.
func (f field) jsonName() string {
	if f.isInline() {
		return "-"
	}
	return cmp.Or(f.tag.name, f.name)
}

// isExchanged tells what is in JSON or in protobuf.
func (f field) isExchanged() bool {
	if f.isInline() {
		return !f.tag.notInProtobuf
	}
	return f.jsonName() != "-" || f.tag.number != ""
}

// references are the types that it is made of, in JSON or in protobuf.
func (t *goType) references() []typeName {
	if !t.isStruct {
		return t.is.references()
	}
	var names []typeName
	for _, field := range t.fields {
		names = append(names, field.is.references()...)
	}
	return names
}
