package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// The modules that are read, each at the version that go.mod requires.
var modulePaths = []string{
	"k8s.io/api",
	"k8s.io/apiextensions-apiserver",
	"k8s.io/apimachinery",
	"k8s.io/kube-aggregator",
}

// A module whose source is read.
type module struct {
	Path    string
	Version string
	// Where its source is.
	Dir string
}

// findModules tells where the modules are, and downloads those that are not there; go.sum pins what they hold.
func findModules() ([]module, error) {
	listed, err := exec.Command("go", append([]string{"mod", "download", "-json"}, modulePaths...)...).Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		return nil, fmt.Errorf("go mod download: %s%s", listed, exit.Stderr)
	}
	if err != nil {
		return nil, err
	}
	var modules []module
	for decoder := json.NewDecoder(strings.NewReader(string(listed))); decoder.More(); {
		var found module
		if err := decoder.Decode(&found); err != nil {
			return nil, err
		}
		modules = append(modules, found)
	}
	return modules, nil
}
