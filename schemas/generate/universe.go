package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// All that was read so far, by import path.
type universe struct {
	modules  []module
	packages map[string]*goPackage
}

func newUniverse(modules []module) *universe {
	return &universe{modules: modules, packages: map[string]*goPackage{}}
}

// The packages whose kinds are served or exchanged, beside those of k8s.io/api.
var rootPackages = []string{
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
	"k8s.io/apimachinery/pkg/apis/meta/v1",
	"k8s.io/apimachinery/pkg/apis/meta/v1beta1",
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1",
}

// What is exchanged without being a kind.
var rootTypes = []typeName{
	{"k8s.io/apimachinery/pkg/apis/meta/v1", "LabelSelector"},
	{"k8s.io/apimachinery/pkg/apis/meta/v1", "Timestamp"},
	{"k8s.io/apimachinery/pkg/apis/meta/v1", "WatchEvent"},
	{"k8s.io/apimachinery/pkg/runtime", "Unknown"},
	// An autoscaler has these in annotations.
	{"k8s.io/api/autoscaling/v1", "MetricSpec"},
	{"k8s.io/api/autoscaling/v1", "MetricStatus"},
	{"k8s.io/api/autoscaling/v1", "HorizontalPodAutoscalerCondition"},
}

// The name of a type, with the import path of its package.
type typeName struct{ path, name string }

// loadRoots reads the packages that kinds are looked for in.
func (u *universe) loadRoots() error {
	paths := slices.Clone(rootPackages)
	api, err := u.module("k8s.io/api")
	if err != nil {
		return err
	}
	versions, err := filepath.Glob(filepath.Join(api.Dir, "*", "v[0-9]*"))
	if err != nil {
		return err
	}
	for _, dir := range versions {
		folder, version := filepath.Split(dir)
		group := filepath.Base(folder)
		if _, err := os.Stat(filepath.Join(dir, "doc.go")); err == nil {
			paths = append(paths, path.Join(api.Path, group, version))
		}
	}
	for _, path := range paths {
		if _, err := u.load(path); err != nil {
			return err
		}
	}
	return nil
}

// module is the one that holds the package of an import path.
func (u *universe) module(path string) (module, error) {
	for _, module := range u.modules {
		if path == module.Path || strings.HasPrefix(path, module.Path+"/") {
			return module, nil
		}
	}
	return module{}, fmt.Errorf("%s is in none of the modules", path)
}

// load reads a package, if it was not read before.
func (u *universe) load(path string) (*goPackage, error) {
	if found, ok := u.packages[path]; ok {
		return found, nil
	}
	module, err := u.module(path)
	if err != nil {
		return nil, err
	}
	found, err := readPackage(path, filepath.Join(module.Dir, filepath.FromSlash(strings.TrimPrefix(path, module.Path))))
	if err != nil {
		return nil, err
	}
	found.version = module.Version
	u.packages[path] = found
	return found, nil
}

// find is the type of a name.
func (u *universe) find(name typeName) (*goType, error) {
	in, err := u.load(name.path)
	if err != nil {
		return nil, err
	}
	found, ok := in.types[name.name]
	if !ok {
		return nil, fmt.Errorf("%s has no type %s", name.path, name.name)
	}
	return found, nil
}

// reach is every kind of the packages that were read, the types given, and every type that one of them is made of.
func (u *universe) reach(types ...typeName) (map[typeName]*goType, error) {
	todo := slices.Clone(types)
	for path, in := range maps.Clone(u.packages) {
		for name, found := range in.types {
			if found.isObject {
				todo = append(todo, typeName{path, name})
			}
		}
	}
	reached := map[typeName]*goType{}
	for len(todo) > 0 {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, seen := reached[name]; seen {
			continue
		}
		found, err := u.find(name)
		if err != nil {
			return nil, err
		}
		reached[name] = found
		todo = append(todo, found.references()...)
	}
	return reached, nil
}

var versionPattern = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// shortName is how the data calls a package: by group and version, as `core.v1`, or by its last element. The one name
// that would be that of a group, too, is `quantity`.
func shortName(importPath string) string {
	last := path.Base(importPath)
	switch {
	case importPath == "k8s.io/apimachinery/pkg/api/resource":
		return "quantity"
	case versionPattern.MatchString(last):
		return path.Base(path.Dir(importPath)) + "." + last
	default:
		return last
	}
}
