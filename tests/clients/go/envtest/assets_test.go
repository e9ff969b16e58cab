package envtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Each program can be named by a variable of its own.
func TestProgramsAreFoundByTheirVariables(test *testing.T) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	test.Setenv("KUBEBUILDER_ASSETS", test.TempDir())
	for variable, program := range map[string]string{
		"TEST_ASSET_KUBE_APISERVER": "kube-apiserver", "TEST_ASSET_ETCD": "etcd", "TEST_ASSET_KUBECTL": "kubectl",
	} {
		test.Setenv(variable, filepath.Join(assets, program))
	}
	environment := &envtest.Environment{}
	config := start(test, environment)
	if err := newClient(test, config).List(test.Context(), &corev1.NamespaceList{}); err != nil {
		test.Error(err)
	}
	stdout, stderr, err := environment.ControlPlane.KubeCtl().Run("get", "ns", "default")
	if err != nil {
		said, _ := readAll(stderr)
		test.Fatal(err, said)
	}
	if text, _ := readAll(stdout); !strings.Contains(text, "Active") {
		test.Error(text)
	}
}

// Where the PATH has no kubectl, the few calls are answered that test tools make, and others say what this is.
func TestFewCallsOfKubectlAreAnswered(test *testing.T) {
	environment := &envtest.Environment{CRDInstallOptions: crds}
	admin := newClient(test, start(test, environment))
	user, err := environment.AddUser(envtest.User{Name: "ops", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		test.Fatal(err)
	}
	kubeconfig, err := user.KubeConfig()
	file := filepath.Join(test.TempDir(), "kubeconfig")
	if err == nil {
		err = os.WriteFile(file, kubeconfig, 0o600)
	}
	if err != nil {
		test.Fatal(err)
	}
	kubectl := func(input string, arguments ...string) (string, error) {
		command := exec.CommandContext(test.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), arguments...)
		command.Env = []string{"PATH=", "KUBECONFIG=" + file}
		command.Stdin = strings.NewReader(input)
		told, err := command.CombinedOutput()
		return string(told), err
	}
	const text = `apiVersion: v1
kind: ConfigMap
metadata: {name: chart}
data: {depth: "3"}
---
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: ark}
spec: {crew: 1}
`
	for _, check := range []struct {
		call, input, told string
		fails             bool
	}{
		{call: "version", told: "Client Version: v1."},
		{call: "get ns", told: "kube-system"},
		{call: "create -f -", input: text, told: "configmap/chart created\nboat.harbour.example.com/ark created\n"},
		{call: "create -f -", input: text, told: `Error from server (AlreadyExists): configmaps "chart" already exists`, fails: true},
		{
			call: "apply -f -", input: strings.Replace(text, `"3"`, `"4"`, 1),
			told: "configmap/chart serverside-applied\nboat.harbour.example.com/ark serverside-applied\n",
		},
		{call: "get pods", told: "this is skiff in place of kubectl", fails: true},
	} {
		told, err := kubectl(check.input, strings.Fields(check.call)...)
		if (err != nil) != check.fails || !strings.Contains(told, check.told) {
			test.Error(check.call, told, err)
		}
	}
	chart := &corev1.ConfigMap{}
	if err := admin.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "chart"}, chart); err != nil || chart.Data["depth"] != "4" {
		test.Error(chart.Data, err)
	}
}
