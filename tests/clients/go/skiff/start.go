// Package skiff starts the server under test. README shows this file.
package skiff

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Start runs a server, with further arguments, until the test ends; it returns how to reach it as its administrator.
func Start(t testing.TB, arguments ...string) *rest.Config {
	dir := t.TempDir()
	arguments = append([]string{"serve", "--listen", "127.0.0.1:0", "--store", "memory", "--data-dir", dir}, arguments...)
	server := exec.Command(program(), arguments...)
	server.Stderr = t.Output()
	stdout, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Signal(os.Interrupt)
		server.Wait()
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); !strings.HasPrefix(line, "ready ") {
		t.Fatal("skiff did not start:", line, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // The server is ours alone: no rate limit.
	return config
}

// program is the one that SKIFF names, or that on the PATH.
func program() string {
	if named := os.Getenv("SKIFF"); named != "" {
		return named
	}
	return "skiff"
}
