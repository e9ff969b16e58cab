package skiff

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// How many lines of what a server says are kept: the newest.
	linesMax = 10_000
	// How long a server may take to end before it is killed.
	stopMax = 10 * time.Second
)

// Start gives the test a control plane until it ends, and returns how to reach it as its administrator.
//
// Tests with the same options have one server, which is started by the first of them and ends with this process: each gets a copy
// of what it began with, in milliseconds. With [OwnProcess] or [Output], the test has a server of its own.
func Start(t testing.TB, options ...Option) *rest.Config {
	t.Helper()
	return New(t, options...).Config
}

// New is [Start] for tests that want to know more of their control plane.
func New(t testing.TB, options ...Option) *ControlPlane {
	t.Helper()
	plane, err := open(settingsOf(options))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { plane.finish(t) })
	return plane
}

// open makes a control plane for a test.
func open(settings *settings) (*ControlPlane, error) {
	if settings.ownProcess || settings.output != nil {
		return start(settings)
	}
	server, err := servers.get(settings)
	if err != nil {
		return nil, err
	}
	return server.OpenFork()
}

// finish ends the control plane with its test, and tells what it was asked if that has failed.
func (p *ControlPlane) finish(t testing.TB) {
	if t.Failed() {
		t.Logf("skiff: %s was asked\n%s", p.Config.Host, strings.Join(p.Log(), "\n"))
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

// ControlPlane is a running server, or a copy in one. Nobody else uses it; whoever has its kubeconfig may do everything in it.
type ControlPlane struct {
	// Config is how to reach it as its administrator. It has no rate limit.
	Config *rest.Config
	// Kubeconfig is the path of a file that says the same, which is there until the control plane ends.
	Kubeconfig string

	server *exec.Cmd
	said   *lines
	ended  chan struct{}
	// What is removed at the end.
	folder string

	// Of a copy, the one that has the server, and the name that it has there.
	first *ControlPlane
	name  string
}

// Open starts a control plane that belongs to no test, for a TestMain: it ends with [ControlPlane.Stop] or with this process.
func Open(options ...Option) (*ControlPlane, error) {
	return start(settingsOf(options))
}

func start(settings *settings) (*ControlPlane, error) {
	program, err := Program()
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(os.TempDir(), "skiff-"+string(uuid.NewUUID()))
	arguments := []string{
		"serve", fmt.Sprintf("--temporary=%d", os.Getpid()),
		"--listen", "127.0.0.1:0", "--store", "memory", "--data-dir", folder,
	}
	server := exec.Command(program, append(arguments, settings.arguments...)...)
	server.Env = append(os.Environ(), append([]string{"SKIFF_TRACE=requests"}, settings.environment...)...)
	said := &lines{copy: settings.output}
	server.Stderr = said
	stdout, err := server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("skiff did not start: %w", err)
	}
	// Where it ends before, the line is empty.
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	plane := &ControlPlane{server: server, said: said, ended: make(chan struct{}), folder: folder, Kubeconfig: filepath.Join(folder, "kubeconfig")}
	go plane.wait()
	if !strings.HasPrefix(line, "ready ") {
		// It says why until its end.
		err := plane.Stop()
		return nil, errors.Join(fmt.Errorf("skiff did not start: %s", strings.Join(said.all(), "\n")), err)
	}
	plane.Config, err = clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	if err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	plane.Config.QPS = -1
	return plane, nil
}

// Log is what the server has said so far: a line a request, with verb, path, code, time, user, client and what was wrong. Of
// very much, the newest lines.
func (p *ControlPlane) Log() []string {
	if p.first != nil {
		return linesOf(p.name, p.first.said.all())
	}
	return p.said.all()
}

// Stop ends the control plane, and removes what it had. It may be called again.
func (p *ControlPlane) Stop() error {
	if p.first != nil {
		return p.stopFork()
	}
	if p.server.Process.Signal(syscall.SIGTERM) != nil {
		// It has ended, or this is Windows, which has no signals.
		_ = p.server.Process.Kill()
	}
	// One that is killed leaves its folder behind.
	defer func() { _ = os.RemoveAll(p.folder) }()
	select {
	case <-p.ended:
	case <-time.After(stopMax):
		_ = p.server.Process.Kill()
		<-p.ended
		return fmt.Errorf("skiff did not end within %s, and was killed", stopMax)
	}
	return nil
}

func (p *ControlPlane) wait() {
	// How it ended is in its log.
	_ = p.server.Wait()
	close(p.ended)
}

// Program is the path of skiff: the one that the variable SKIFF names, else the one on the PATH.
func Program() (string, error) {
	if named := os.Getenv("SKIFF"); named != "" {
		program, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("SKIFF names no program: %w", err)
		}
		return program, nil
	}
	program, err := exec.LookPath("skiff")
	if err != nil {
		return "", fmt.Errorf("there is no skiff, and SKIFF names none: %w", err)
	}
	return program, nil
}

// lines takes what a server says, so that it never waits.
type lines struct {
	mutex  sync.Mutex
	newest []string
	begun  string
	copy   io.Writer
}

func (l *lines) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.copy != nil {
		if _, err := l.copy.Write(text); err != nil {
			return 0, err
		}
	}
	whole := strings.Split(l.begun+string(text), "\n")
	l.begun = whole[len(whole)-1]
	l.newest = append(l.newest, whole[:len(whole)-1]...)
	if len(l.newest) > linesMax {
		l.newest = append([]string(nil), l.newest[len(l.newest)-linesMax:]...)
	}
	return len(text), nil
}

func (l *lines) all() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return append([]string(nil), l.newest...)
}
