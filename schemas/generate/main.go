// Makes kubeskiff's type data: a text file for each package of Kubernetes' published types.
//
// In: the source of the modules that go.mod requires. Out: ../types/GROUP.VERSION.txt, in the format that README.md
// describes. With -check nothing is written, and every file that would change is told.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	out := flag.String("out", "../types", "the folder of the files")
	check := flag.Bool("check", false, "write nothing, and fail where a file is not as it would be written")
	flag.Parse()
	if err := run(*out, *check); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(out string, check bool) error {
	modules, err := findModules()
	if err != nil {
		return err
	}
	universe := newUniverse(modules)
	if err := universe.loadRoots(); err != nil {
		return err
	}
	reached, err := universe.reach(rootTypes...)
	if err != nil {
		return err
	}
	files, err := universe.print(reached)
	if err != nil {
		return err
	}
	if check {
		return compare(out, files)
	}
	return write(out, files)
}

// write replaces what is in the folder.
func write(out string, files map[string][]byte) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(out, "*.txt"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if _, stays := files[filepath.Base(path)]; !stays {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(out, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compare tells every file of the folder that differs, is missing or is there for nothing.
func compare(out string, files map[string][]byte) error {
	there, err := filepath.Glob(filepath.Join(out, "*.txt"))
	if err != nil {
		return err
	}
	var faults []error
	for _, path := range there {
		if _, made := files[filepath.Base(path)]; !made {
			faults = append(faults, fmt.Errorf("%s is not made any more", path))
		}
	}
	for _, name := range sortedKeys(files) {
		faults = append(faults, compareFile(filepath.Join(out, name), files[name]))
	}
	return errors.Join(faults...)
}

func compareFile(path string, wanted []byte) error {
	found, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is missing", path)
	case err != nil:
		return err
	case !bytes.Equal(found, wanted):
		return fmt.Errorf("%s differs", path)
	}
	return nil
}

func sortedKeys[V any](values map[string]V) []string {
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
