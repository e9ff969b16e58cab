package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// print makes the files of the types that were reached, by file name.
func (u *universe) print(reached map[typeName]*goType) (map[string][]byte, error) {
	names := map[string][]string{}
	for name := range reached {
		names[name.path] = append(names[name.path], name.name)
	}
	files := map[string][]byte{}
	for path, names := range names {
		file := shortName(path) + ".txt"
		if _, twice := files[file]; twice {
			return nil, fmt.Errorf("two packages are called %s", file)
		}
		in := u.packages[path]
		slices.Sort(names)
		var out bytes.Buffer
		fmt.Fprintf(&out, "# %s, %s%s; made by schemas/generate\n", path, in.version, in.groupWord())
		for _, name := range names {
			if err := u.printType(&out, in, name); err != nil {
				return nil, fmt.Errorf("%s.%s: %w", path, name, err)
			}
		}
		files[file] = out.Bytes()
	}
	return files, nil
}

// groupWord tells the API group of a package that has one.
func (p *goPackage) groupWord() string {
	if p.group == nil {
		return ""
	}
	return fmt.Sprintf(", group=%s", *p.group)
}

func (u *universe) printType(out *bytes.Buffer, in *goPackage, name string) error {
	found := in.types[name]
	words, err := u.typeWords(in, name, found)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, strings.Join(words, " "))
	if embed := found.markers.value("protobuf.embed"); embed != "" {
		fmt.Fprintf(out, "\t- %s 1 proto=%s\n", embed, embed)
		return nil
	}
	for _, field := range found.fields {
		words, err := u.fieldWords(in, field)
		if err != nil {
			return fmt.Errorf("%s: %w", field.name, err)
		}
		fmt.Fprintf(out, "\t%s\n", strings.Join(words, " "))
	}
	return nil
}

// The words of a line, in the order in which they were said.
type words []string

// add says a word where it holds.
func (w *words) add(holds bool, word string) {
	if holds {
		*w = append(*w, word)
	}
}

// set says `name=value`, unless the value is empty.
func (w *words) set(name, value string) {
	w.add(value != "", name+"="+value)
}

func (u *universe) typeWords(in *goPackage, name string, of *goType) (words, error) {
	said := words{"type", name}
	if !of.isStruct {
		text, err := of.is.text()
		if err != nil {
			return nil, err
		}
		said.add(true, text)
	}
	said.add(of.isAlias, "alias")
	said.add(of.isObject, "object")
	if list, ok := in.types[name+"List"]; ok && of.isObject && list.isObject {
		said.set("list", name+"List")
	}
	said.add(of.ownJSON, "own")
	said.set("schema", of.schema())
	said.set("oneof", strings.Join(of.schemaOneOf, ","))
	if err := u.addEnum(&said, in, name, of); err != nil {
		return nil, err
	}
	said.set("struct", of.markers.value("structType"))
	said.add(of.markers.has("union"), "union")
	said.add(!of.isStruct && of.markers.has("protobuf.nullable"), "message")
	said.set("as", of.markers.value("protobuf.as"))
	said.add(of.markers.has("genclient:nonNamespaced"), "cluster")
	for _, step := range []string{"introduced", "deprecated", "removed", "replacement"} {
		said.set(step, of.markers.value("k8s:prerelease-lifecycle-gen:"+step))
	}
	return append(said, validationWords(of.markers)...), nil
}

// schema is `string:date-time`, or `any` for a type that leaves it open.
func (t *goType) schema() string {
	if !t.saysType {
		return ""
	}
	text := "any"
	if len(t.schemaType) > 0 {
		text = strings.Join(t.schemaType, ",")
	}
	if t.schemaFormat != "" {
		text += ":" + t.schemaFormat
	}
	return text
}

// addEnum says the values of a string type: `enum` for those that OpenAPI lists, `values` for those that only
// validation knows.
func (u *universe) addEnum(said *words, in *goPackage, name string, of *goType) error {
	word := "values"
	if of.markers.has("enum") {
		word = "enum"
	}
	isListed := word == "enum" || slices.ContainsFunc(of.markers, isEnumTag)
	if of.isAlias || !isListed {
		return nil
	}
	var values []string
	for _, constant := range in.constants {
		if constant.of != (typeName{in.path, name}) {
			continue
		}
		value, err := u.evaluate(constant.value)
		if err != nil {
			return err
		}
		if value = escape(value, " ,"); !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	*said = append(*said, word+"="+strings.Join(values, ","))
	return nil
}

func isEnumTag(marker string) bool {
	return strings.HasSuffix("+"+marker, "+k8s:enum")
}

func (u *universe) fieldWords(in *goPackage, field field) (words, error) {
	text, err := field.is.text()
	if err != nil {
		return nil, err
	}
	number := "-"
	if field.tag.number != "" {
		number = field.tag.number
	}
	name := field.jsonName()
	said := words{name, text, number}
	said = append(said, field.tag.omit...)
	said.add(field.isInline(), "inline")
	said.add(field.markers.has("optional"), "optional")
	said.add(field.markers.has("required"), "required")
	said.add(field.name != withUpperFirst(name), "go="+field.name)
	protoName := cmp.Or(field.tag.protoName, withLowerFirst(field.name))
	said.add(field.tag.number != "" && protoName != name, "proto="+protoName)
	said.set("patch", field.tag.patchStrategy)
	said.set("key", field.tag.patchMergeKey)
	said.set("list", listWord(field.markers))
	said.set("map", field.markers.value("mapType"))
	said.set("struct", field.markers.value("structType"))
	said.add(field.markers.has("unionDiscriminator"), "discriminator")
	if value := field.markers.value("default"); value != "" {
		text, err := u.defaultText(in, value)
		if err != nil {
			return nil, err
		}
		said.set("default", text)
	}
	return append(said, validationWords(field.markers)...), nil
}

// listWord is `map(containerPort,protocol)`, `set` or `atomic`.
func listWord(of markers) string {
	kind := of.value("listType")
	if keys := of.values("listMapKey"); kind == "map" && len(keys) > 0 {
		return "map(" + strings.Join(keys, ",") + ")"
	}
	return kind
}

// defaultText is a default as JSON: `ref(Name)` stands for a constant.
func (u *universe) defaultText(in *goPackage, text string) (string, error) {
	if name, ok := strings.CutPrefix(text, "ref("); ok {
		value, err := u.constant(typeName{in.path, strings.TrimSuffix(name, ")")})
		if err != nil {
			return "", err
		}
		text = strconv.Quote(value)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return "", fmt.Errorf("the default %s: %w", text, err)
	}
	return escape(compact.String(), " "), nil
}

func validationWords(of markers) words {
	var said words
	for _, tag := range of.validation() {
		said = append(said, "+"+escape(tag, " "))
	}
	return said
}

// escape writes the characters that would end a word, and the percent sign, as %20.
func escape(text, characters string) string {
	var out strings.Builder
	for _, character := range text {
		if strings.ContainsRune("%"+characters, character) {
			fmt.Fprintf(&out, "%%%02X", character)
		} else {
			out.WriteRune(character)
		}
	}
	return out.String()
}

func withUpperFirst(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	return strings.ToUpper(string(first)) + name[size:]
}

func withLowerFirst(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	return strings.ToLower(string(first)) + name[size:]
}
