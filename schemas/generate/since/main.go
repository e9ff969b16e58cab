// Writes ../since.txt: the fields of built-in kinds that the oldest minor does not know, each with the minor that brought it.
//
//	go run ./since
//
// The facts are those of the published modules k8s.io/api, k8s.io/apimachinery and k8s.io/apiextensions-apiserver of each
// minor. A field that came with its type is left out: who does not know the type does not get there.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
)

const (
	oldest = 29
	newest = 37
)

// The fields of each type by its package and name, as JSON has them: core.v1.PodSpec.
type types map[string]map[string]bool

func main() {
	minors := map[int]types{}
	for minor := oldest; minor <= newest; minor++ {
		found := types{}
		read(found, folder("k8s.io/api", minor), "*/v*")
		read(found, filepath.Join(folder("k8s.io/apimachinery", minor), "pkg/apis"), "meta/v1")
		read(found, filepath.Join(folder("k8s.io/apiextensions-apiserver", minor), "pkg/apis"), "apiextensions/v1")
		minors[minor] = found
	}
	var lines []string
	for name, fields := range minors[newest] {
		var words []string
		for field := range fields {
			if since := since(minors, name, field); since > oldest && minors[since-1][name] != nil {
				words = append(words, fmt.Sprintf("%s=1.%d", field, since))
			}
		}
		if len(words) > 0 {
			sort.Strings(words)
			lines = append(lines, name+" "+strings.Join(words, " ")+"\n")
		}
	}
	sort.Strings(lines)
	head := fmt.Sprintf("# Fields that Kubernetes 1.%d does not know, with the minor from which on they are there; made by schemas/generate/since\n", oldest)
	text := head + strings.Join(lines, "")
	if err := os.WriteFile("../since.txt", []byte(text), 0o644); err != nil {
		log.Fatal(err)
	}
}

// From which minor on a field of a type is there.
func since(minors map[int]types, name, field string) int {
	minor := newest
	for minor > oldest && minors[minor-1][name][field] {
		minor--
	}
	return minor
}

// Where a module of a minor is, which is fetched if it is not there.
func folder(module string, minor int) string {
	command := exec.Command("go", "mod", "download", "-json", fmt.Sprintf("%s@v0.%d.0", module, minor))
	command.Stderr = os.Stderr
	told, err := command.Output()
	if err != nil {
		log.Fatal(err)
	}
	var found struct{ Dir string }
	if err := json.NewDecoder(bytes.NewReader(told)).Decode(&found); err != nil {
		log.Fatal(err)
	}
	return found.Dir
}

// Reads the packages of a module.
func read(found types, root, pattern string) {
	folders, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		log.Fatal(err)
	}
	for _, folder := range folders {
		path, err := filepath.Rel(root, folder)
		if err != nil {
			log.Fatal(err)
		}
		readPackage(found, folder, strings.ReplaceAll(filepath.ToSlash(path), "/", "."))
	}
}

func readPackage(found types, folder, name string) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		log.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			log.Fatal(err)
		}
		for _, declared := range parsed.Decls {
			general, ok := declared.(*ast.GenDecl)
			if !ok || general.Tok != token.TYPE {
				continue
			}
			for _, spec := range general.Specs {
				of := spec.(*ast.TypeSpec)
				if structure, ok := of.Type.(*ast.StructType); ok {
					found[name+"."+of.Name.Name] = fields(structure)
				}
			}
		}
	}
}

// The names of a struct's fields in JSON.
func fields(structure *ast.StructType) map[string]bool {
	names := map[string]bool{}
	for _, field := range structure.Fields.List {
		if field.Tag == nil {
			continue
		}
		tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
		if name, _, _ := strings.Cut(tag, ","); name != "" && name != "-" {
			names[name] = true
		}
	}
	return names
}
