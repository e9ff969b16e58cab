// Package processes tells which programs a test has started and are still there.
package processes

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Children are the ids of the processes of this one that still run; there are none to be seen but on Linux.
func Children(test testing.TB) []string {
	test.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		test.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		fields := stat(filepath.Base(entry))
		if len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) && fields[0] != "Z" {
			found = append(found, filepath.Base(entry))
		}
	}
	return found
}

// Runs tells whether a process is there and has not ended.
func Runs(id string) bool {
	fields := stat(id)
	return len(fields) > 0 && fields[0] != "Z"
}

// stat is the state, the parent and more of a process.
func stat(id string) []string {
	text, err := os.ReadFile(filepath.Join("/proc", id, "stat"))
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.Fields(rest)
}
