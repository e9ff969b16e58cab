package skiff

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// prepared is what [Fork] copies, once it is there.
var prepared struct {
	once    sync.Once
	options []Option
	prepare func(*rest.Config) error
	plane   *ControlPlane
	err     error
}

// Prepare says what the control plane has that [Fork] copies: it is made as by [Start] with these options, and prepared once, for
// all tests of the package. It is called before them, in an init or a TestMain.
func Prepare(prepare func(*rest.Config) error, options ...Option) {
	prepared.prepare, prepared.options = prepare, options
}

// Fork gives the test a copy of the control plane that [Prepare] has described, with its objects, definitions and users, until
// the test ends; and returns how to reach it as its administrator. Copies take milliseconds, and know nothing of each other.
func Fork(t testing.TB, options ...ForkOption) *rest.Config {
	t.Helper()
	return Prepared(t).Fork(t, options...).Config
}

// Prepared is the control plane that [Prepare] has described; tests copy it, and leave it as it is.
func Prepared(t testing.TB) *ControlPlane {
	t.Helper()
	prepared.once.Do(func() {
		prepared.plane, prepared.err = open(settingsOf(prepared.options))
		if prepared.err == nil && prepared.prepare != nil {
			prepared.err = prepared.prepare(prepared.plane.Config)
		}
	})
	if prepared.err != nil {
		t.Fatal(prepared.err)
	}
	return prepared.plane
}

// ForkOption says what runs in a copy beside its requests. Without any, that is what runs in the control plane that was
// started; with some, what is not said is as without a word to `skiff serve`.
type ForkOption func(*wanted)

type wanted struct {
	From          string   `json:"from"`
	Profile       string   `json:"profile,omitempty"`
	Controllers   []string `json:"controllers,omitempty"`
	SimulateNodes string   `json:"simulateNodes,omitempty"`
}

// Profile is what `*` stands for among the controllers: server, or cluster for all, with nodes that are simulated.
func Profile(name string) ForkOption {
	return func(w *wanted) { w.Profile = name }
}

// Controllers are those that run, by kube-controller-manager's names: * for all of the profile, NAME, -NAME for all but that.
func Controllers(names ...string) ForkOption {
	return func(w *wanted) { w.Controllers = names }
}

// SimulateNodes are nodes that nothing is behind, as in 3,cpu=8,label=zone=a.
func SimulateNodes(plan string) ForkOption {
	return func(w *wanted) { w.SimulateNodes = plan }
}

// Fork makes a copy of the control plane as it is now, until the test ends.
func (p *ControlPlane) Fork(t testing.TB, options ...ForkOption) *ControlPlane {
	t.Helper()
	fork, err := p.OpenFork(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fork.finish(t) })
	return fork
}

// OpenFork makes a copy of the control plane as it is now, which belongs to no test: it ends with [ControlPlane.Stop], or with
// the control plane that the first one is a copy of.
func (p *ControlPlane) OpenFork(options ...ForkOption) (*ControlPlane, error) {
	first, wanted := p, wanted{From: "main"}
	if p.first != nil {
		first, wanted.From = p.first, p.name
	}
	for _, option := range options {
		option(&wanted)
	}
	var made struct{ Name, Kubeconfig string }
	if err := first.ask(http.MethodPost, "/skiff/v1/planes", wanted, &made); err != nil {
		return nil, err
	}
	fork := &ControlPlane{first: first, name: made.Name}
	fork.Kubeconfig = filepath.Join(first.folder, made.Name+".kubeconfig")
	if err := os.WriteFile(fork.Kubeconfig, []byte(made.Kubeconfig), 0o600); err != nil {
		return nil, err
	}
	var err error
	fork.Config, err = clientcmd.RESTConfigFromKubeConfig([]byte(made.Kubeconfig))
	if err != nil {
		return nil, err
	}
	fork.Config.QPS = -1
	return fork, nil
}

// stopFork gives the memory of a copy back.
func (p *ControlPlane) stopFork() error {
	// Where it is gone already, there is nothing to remove.
	_ = os.Remove(filepath.Join(p.first.folder, p.name+".kubeconfig"))
	return ignoreNotFound(p.first.ask(http.MethodDelete, "/skiff/v1/planes/"+p.name, nil, nil))
}

// linesOf are those of the lines that are about the control plane of that name, without it.
func linesOf(name string, lines []string) []string {
	var own []string
	for _, line := range lines {
		if rest, is := strings.CutPrefix(line, fmt.Sprintf("[%s] ", name)); is {
			own = append(own, rest)
		}
	}
	return own
}
