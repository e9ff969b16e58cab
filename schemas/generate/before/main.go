// Writes ../before.txt: what older minors published of the fields of built-in kinds in another way than the newest one.
//
//	go run ./before
//
// The facts are those of the published modules of each minor, as this program's parent reads them. A line is a type and
// words: FACT<1.N:FIELD,..., which holds of these fields before that minor. A fact is `optional` or `required`, or one of
// `list=`, `map=`, `default=` and `enum=` with what it was, or with nothing where there was none. The type itself is the field
// `.`. Fields that a minor does not have at all are in ../since.txt.
package main

import (
	"bytes"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	oldest = 29
	newest = 37
)

// What is known of a field, by the name of the fact.
type facts map[string]string

// A package's types by their names, each with its fields.
type types map[string]map[string]facts

var names = []string{"required", "list", "map", "default", "enum"}

func main() {
	scratch, err := os.MkdirTemp("", "before")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(scratch)
	minors := map[int]types{}
	for minor := oldest; minor <= newest; minor++ {
		minors[minor] = read(generate(scratch, minor))
	}
	var lines []string
	for name, fields := range minors[newest] {
		changed := map[string][]string{}
		for field := range fields {
			for _, fact := range changes(minors, name, field) {
				changed[fact] = append(changed[fact], field)
			}
		}
		line := name
		for _, fact := range slices.Sorted(maps.Keys(changed)) {
			line += " " + fact + ":" + strings.Join(slices.Sorted(slices.Values(changed[fact])), ",")
		}
		if len(changed) > 0 {
			lines = append(lines, line+"\n")
		}
	}
	slices.Sort(lines)
	head := "# What older minors published of fields in another way, and before which one; made by schemas/generate/before\n"
	if err := os.WriteFile("../before.txt", []byte(head+strings.Join(lines, "")), 0o644); err != nil {
		log.Fatal(err)
	}
}

// What changed of a field from minor to minor.
func changes(minors map[int]types, name, field string) []string {
	var found []string
	for minor := newest; minor > oldest; minor-- {
		now, before := minors[minor][name][field], minors[minor-1][name][field]
		if now == nil || before == nil {
			break
		}
		for _, fact := range names {
			if before[fact] == now[fact] {
				continue
			}
			was := fact + "=" + before[fact]
			if fact == "required" {
				was = map[string]string{"": "optional", "yes": "required"}[before[fact]]
			}
			found = append(found, fmt.Sprintf("%s<1.%d", was, minor))
		}
	}
	return found
}

// Has the types of a minor written, and tells the folder.
func generate(scratch string, minor int) string {
	modules, err := os.ReadFile("go.mod")
	if err != nil {
		log.Fatal(err)
	}
	wanted := regexp.MustCompile(`v0\.\d+\.\d+`).ReplaceAll(modules, fmt.Appendf(nil, "v0.%d.0", minor))
	file := filepath.Join(scratch, fmt.Sprintf("%d.mod", minor))
	if err := os.WriteFile(file, wanted, 0o644); err != nil {
		log.Fatal(err)
	}
	out := filepath.Join(scratch, fmt.Sprint(minor))
	command := exec.Command("go", "run", ".", "-out", out)
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod -modfile="+file)
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		log.Fatal(err)
	}
	return out
}

// Reads the files of a folder.
func read(folder string) types {
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		log.Fatal(err)
	}
	enums, found := map[string]string{}, types{}
	for _, second := range []bool{false, true} {
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				log.Fatal(err)
			}
			name := strings.TrimSuffix(filepath.Base(file), ".txt")
			if isGone(text) {
				continue
			}
			if second {
				readFields(found, name, text, enums)
			} else {
				readEnums(enums, name, text)
			}
		}
	}
	return found
}

// Whether the oldest minor serves none of the kinds of a package that has some.
func isGone(text []byte) bool {
	kinds, left := 0, 0
	for line := range bytes.Lines(text) {
		words := strings.Fields(string(line))
		if !bytes.HasPrefix(line, []byte("type ")) || value(words, "list") == "" {
			continue
		}
		kinds++
		removed := newest
		fmt.Sscanf(value(words, "removed"), "1.%d", &removed)
		if removed > oldest {
			left++
		}
	}
	return kinds > 0 && left == 0
}

func readEnums(enums map[string]string, name string, text []byte) {
	for line := range bytes.Lines(text) {
		if words := strings.Fields(string(line)); bytes.HasPrefix(line, []byte("type ")) {
			enums[name+"."+words[1]] = value(words, "enum")
		}
	}
}

func readFields(found types, name string, text []byte, enums map[string]string) {
	var fields map[string]facts
	for line := range bytes.Lines(text) {
		words := strings.Fields(string(line))
		isType := bytes.HasPrefix(line, []byte("type "))
		switch {
		case len(words) == 0 || words[0] == "#":
		case isType:
			fields = map[string]facts{".": {"map": value(words, "struct")}}
			found[name+"."+words[1]] = fields
		case words[0] != "-":
			fields[words[0]] = factsOf(name, words, enums)
		}
	}
}

func factsOf(name string, words []string, enums map[string]string) facts {
	has := func(word string) bool { return slices.Contains(words, word) }
	isOptional := has("omitempty") || has("omitzero") || has("optional")
	known := facts{"list": value(words, "list"), "map": value(words, "map") + value(words, "struct")}
	if has("required") || !isOptional && !has("inline") {
		known["required"] = "yes"
	}
	of := words[1][strings.LastIndexAny(words[1], "*]")+1:]
	if !strings.Contains(of, ".") {
		of = name + "." + of
	}
	known["enum"] = enums[of]
	known["default"] = value(words, "default")
	// What is always written has Go's zero value where nothing else is said.
	if known["default"] == "" && !has("omitempty") && !has("omitzero") && !strings.ContainsAny(words[1], "*[") {
		zero := map[string]string{"string": `""`, "bool": "false", "int32": "0", "int64": "0"}
		known["default"] = zero[words[1]]
	}
	return known
}

// What stands behind NAME= among words.
func value(words []string, name string) string {
	for _, word := range words {
		if rest, ok := strings.CutPrefix(word, name+"="); ok {
			return rest
		}
	}
	return ""
}
