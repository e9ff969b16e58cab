package skiff_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	skiff "github.com/kubeskiff/kubeskiff/helpers/go"
)

const (
	definitions = "../../crd-examples/rules/crd.yaml"
	group       = "rules.example.com/v1"
	// What a program under test is to do, for this program when it is started by its own tests.
	part = "SKIFF_TEST_PART"
)

func TestMain(m *testing.M) {
	if os.Getenv(part) == "wait" {
		plane, err := skiff.Open()
		if err != nil {
			panic(err)
		}
		fmt.Println(plane.Kubeconfig)
		select {}
	}
	os.Exit(m.Run())
}

func TestHundredTestsSideBySide(t *testing.T) {
	var options []skiff.Option
	// Set by helpers/measure.
	if os.Getenv("SKIFF_TEST_OWN_PROCESS") != "" {
		options = append(options, skiff.OwnProcess())
	}
	for number := range 100 {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			t.Parallel()
			maps := clientOf(t, skiff.Start(t, options...)).CoreV1().ConfigMaps("default")
			name := fmt.Sprintf("settings-%d", number)
			if _, err := maps.Create(t.Context(), configMap(name), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			list, err := maps.List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range list.Items {
				if item.Name != name && item.Name != "kube-root-ca.crt" {
					t.Errorf("%s is there", item.Name)
				}
			}
		})
	}
}

func TestTestsWithTheSameOptionsHaveOneServer(t *testing.T) {
	folderOf := func(options ...skiff.Option) string {
		return filepath.Dir(skiff.New(t, options...).Kubeconfig)
	}
	first := folderOf()
	if folderOf() != first {
		t.Error("a second server was started")
	}
	for name, options := range map[string][]skiff.Option{
		"other arguments": {skiff.Arguments("--authorization-mode=RBAC")},
		"other variables": {skiff.Variables("SKIFF_LOG=info")},
		"asked for":       {skiff.OwnProcess()},
		"its output":      {skiff.Output(io.Discard)},
	} {
		if folderOf(options...) == first {
			t.Errorf("%s: it is the same server", name)
		}
	}
}

func TestDefinitionsAreServedFromTheStart(t *testing.T) {
	isServed(t, skiff.Start(t, skiff.CRDs(definitions)))
}

func TestAnEnvironmentStartsAndStops(t *testing.T) {
	environment := &skiff.Environment{CRDDirectoryPaths: []string{definitions, "nowhere"}}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	isServed(t, config)
	if !strings.Contains(string(environment.KubeConfig), config.Host) {
		t.Error("the kubeconfig is another server's")
	}
	if _, err := environment.Start(); err == nil {
		t.Error("it started twice")
	}
	if err := errors.Join(environment.Stop(), environment.Stop()); err != nil {
		t.Error(err)
	}
}

func TestAnEnvironmentMayInsistOnItsPaths(t *testing.T) {
	environment := &skiff.Environment{CRDDirectoryPaths: []string{"nowhere"}, ErrorIfCRDPathMissing: true}
	if _, err := environment.Start(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestTheLogTellsWhatWasAsked(t *testing.T) {
	isAsked(t, skiff.New(t), "none")
}

func TestAFailedTestIsToldWhatItsControlPlaneWasAsked(t *testing.T) {
	for name, open := range map[string]func(testing.TB) *skiff.ControlPlane{
		"a control plane": func(t testing.TB) *skiff.ControlPlane { return skiff.New(t) },
		"a server":        func(t testing.TB) *skiff.ControlPlane { return skiff.New(t, skiff.OwnProcess()) },
		"a copy":          func(t testing.TB) *skiff.ControlPlane { return skiff.Prepared(t).Fork(t) },
	} {
		t.Run(name, func(t *testing.T) {
			failing := &failing{TB: t}
			plane, other := open(failing), open(t)
			isAsked(t, other, "others")
			isAsked(t, plane, "own")
			failing.end()
			if !strings.Contains(failing.told, fmt.Sprintf("skiff: %s was asked\n", plane.Config.Host)) {
				t.Error(failing.told)
			}
			own, others := "\nget /api/v1/namespaces/default/configmaps/own 404 ", "/configmaps/others"
			if !strings.Contains(failing.told, own) || strings.Contains(failing.told, others) {
				t.Error(failing.told)
			}
		})
	}
}

// isAsked asks a control plane for what is not there, and waits until it has said so.
func isAsked(t *testing.T, plane *skiff.ControlPlane, name string) {
	t.Helper()
	maps := clientOf(t, plane.Config).CoreV1().ConfigMaps("default")
	if _, err := maps.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	eventually(t, func() bool { return strings.Contains(strings.Join(plane.Log(), "\n"), "/configmaps/"+name+" 404 ") })
}

func TestWhatDoesNotStartSaysWhy(t *testing.T) {
	_, err := skiff.Open(skiff.CRDs("nowhere"))
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Error(err)
	}
}

func TestNothingIsLeftAtTheEnd(t *testing.T) {
	plane, err := skiff.Open(skiff.Arguments("--authorization-mode=RBAC"), skiff.Variables("SKIFF_LOG=info"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(plane.Stop(), plane.Stop()); err != nil {
		t.Fatal(err)
	}
	isGone(t, plane.Kubeconfig)
}

func TestNothingIsLeftAfterAKill(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	killed := exec.Command(program)
	killed.Env = append(os.Environ(), part+"=wait")
	stdout, err := killed.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// It was killed.
	_ = killed.Wait()
	isGone(t, strings.TrimSpace(line))
}

// isGone waits until there is no folder of a control plane any more: its server removes it last.
func isGone(t *testing.T, kubeconfig string) {
	t.Helper()
	eventually(t, func() bool {
		_, err := os.Stat(filepath.Dir(kubeconfig))
		return errors.Is(err, fs.ErrNotExist)
	})
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come to hold")
		}
	}
}

func isServed(t *testing.T, config *rest.Config) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ServerResourcesForGroupVersion(group); err != nil {
		t.Error(err)
	}
}

func clientOf(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// failing is a test that has failed, to see what is told of it.
type failing struct {
	testing.TB
	told    string
	cleanup []func()
}

func (f *failing) Failed() bool                      { return true }
func (f *failing) Logf(format string, values ...any) { f.told += fmt.Sprintf(format, values...) }
func (f *failing) Cleanup(cleanup func())            { f.cleanup = append(f.cleanup, cleanup) }

func (f *failing) end() {
	for _, cleanup := range f.cleanup {
		cleanup()
	}
}
