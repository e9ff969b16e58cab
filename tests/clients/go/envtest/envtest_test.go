// Package envtest checks that controller-runtime's envtest runs on skiff as it runs on etcd and kube-apiserver: the only
// thing that is said is where the programs are.
package envtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"kubeskiff/tests/clients/go/eventually"
	"kubeskiff/tests/clients/go/processes"
)

// The library complains on stderr of a logger that nobody has set.
func init() {
	log.SetLogger(logr.Discard())
}

// start runs a control plane until the test ends.
func start(test testing.TB, environment *envtest.Environment) *rest.Config {
	test.Helper()
	config, err := environment.Start()
	if err != nil {
		test.Fatal(err)
	}
	test.Cleanup(func() { environment.Stop() })
	return config
}

func newClient(test testing.TB, config *rest.Config) client.Client {
	test.Helper()
	made, err := client.New(config, client.Options{})
	if err != nil {
		test.Fatal(err)
	}
	return made
}

func newBoat(name string) *unstructured.Unstructured {
	boat := &unstructured.Unstructured{}
	boat.SetAPIVersion("harbour.example.com/v1")
	boat.SetKind("Boat")
	boat.SetNamespace("default")
	boat.SetName(name)
	boat.Object["spec"] = map[string]any{"crew": int64(1)}
	return boat
}

// crds are the definitions of the programs beside this one.
var crds = envtest.CRDInstallOptions{Paths: []string{"../boats"}, ErrorIfPathMissing: true}

func TestObjectsOutliveTheAPIServer(test *testing.T) {
	environment := &envtest.Environment{CRDInstallOptions: crds}
	config := start(test, environment)
	boats := newClient(test, config)
	if err := boats.Create(test.Context(), newBoat("ark")); err != nil {
		test.Fatal(err)
	}

	apiServer := environment.ControlPlane.GetAPIServer()
	begun := time.Now()
	if err := apiServer.Stop(); err != nil {
		test.Fatal(err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		test.Error("the stop took", took)
	}
	if err := apiServer.Start(); err != nil {
		test.Fatal(err)
	}
	// Its certificates are new ones.
	user, err := environment.AddUser(envtest.User{Name: "again", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		test.Fatal(err)
	}
	found := newBoat("ark")
	if err := newClient(test, user.Config()).Get(test.Context(), client.ObjectKeyFromObject(found), found); err != nil {
		test.Fatal(err)
	}
	if port, _, _ := unstructured.NestedString(found.Object, "spec", "port"); port != "Hull" {
		test.Error("the port is", port)
	}
}

// Two API servers on one etcd are one API: what one stores the other serves and tells its watches.
func TestTwoAPIServersOnOneEtcdAreOne(test *testing.T) {
	environment := &envtest.Environment{CRDInstallOptions: crds}
	one := newClient(test, start(test, environment))
	config := secondOn(test, environment, nil)
	other := newClient(test, config)
	boats := dynamic.NewForConfigOrDie(config).
		Resource(schema.GroupVersionResource{Group: "harbour.example.com", Version: "v1", Resource: "boats"})
	watch, err := boats.Watch(test.Context(), metav1.ListOptions{})
	if err != nil {
		test.Fatal(err)
	}
	defer watch.Stop()
	for round := range 20 {
		from, to := one, other
		if round%2 == 1 {
			from, to = other, one
		}
		boat := newBoat(fmt.Sprint("boat-", round))
		if err := from.Create(test.Context(), boat); err != nil {
			test.Fatal(err)
		}
		read := newBoat(boat.GetName())
		if err := to.Get(test.Context(), client.ObjectKeyFromObject(read), read); err != nil {
			test.Fatal("round", round, err)
		}
		if read.GetResourceVersion() != boat.GetResourceVersion() {
			test.Error("round", round, read.GetResourceVersion(), boat.GetResourceVersion())
		}
		select {
		case event := <-watch.ResultChan():
			if name := event.Object.(*unstructured.Unstructured).GetName(); name != boat.GetName() {
				test.Error("round", round, "told of", name)
			}
		case <-time.After(eventually.Max):
			test.Fatal("round", round, "the watch is told nothing")
		}
		// What the other has changed meanwhile is not a base for a change.
		read.SetLabels(map[string]string{"a": "b"})
		boat.SetLabels(map[string]string{"a": "c"})
		if err := to.Update(test.Context(), read); err != nil {
			test.Fatal(err)
		}
		if err := from.Update(test.Context(), boat); !errors.IsConflict(err) {
			test.Error("round", round, err)
		}
		<-watch.ResultChan()
	}
	// One of them goes, the other goes on.
	if err := environment.ControlPlane.GetAPIServer().Stop(); err != nil {
		test.Fatal(err)
	}
	found := newBoat("boat-0")
	if err := other.Get(test.Context(), client.ObjectKeyFromObject(found), found); err != nil {
		test.Fatal(err)
	}
}

func TestUsersMayDoWhatRolesSay(test *testing.T) {
	environment := &envtest.Environment{}
	config := start(test, environment)
	admin := newClient(test, config)
	jane, err := environment.AddUser(envtest.User{Name: "jane", Groups: []string{"dev"}}, nil)
	if err != nil {
		test.Fatal(err)
	}
	review, err := kubernetes.NewForConfigOrDie(jane.Config()).AuthenticationV1().SelfSubjectReviews().
		Create(test.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || review.Status.UserInfo.Username != "jane" || review.Status.UserInfo.Groups[0] != "dev" {
		test.Error(review, err)
	}
	list := func() error { return newClient(test, jane.Config()).List(test.Context(), &corev1.SecretList{}) }
	if err := list(); !errors.IsForbidden(err) {
		test.Error("without a role:", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "dev"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "dev"}},
	}
	if err := admin.Create(test.Context(), binding); err != nil {
		test.Fatal(err)
	}
	eventually.Holds(test, "the role counts", func(context.Context) (bool, error) { return list() == nil, nil })
}

func TestNothingRunsThatEnvtestDoesNotRun(test *testing.T) {
	environment := &envtest.Environment{}
	admin := newClient(test, start(test, environment))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "doomed"}}
	if err := admin.Create(test.Context(), namespace); err != nil {
		test.Fatal(err)
	}
	key := client.ObjectKey{Namespace: "default", Name: "default"}
	if err := admin.Get(test.Context(), key, &corev1.ServiceAccount{}); !errors.IsNotFound(err) {
		test.Error("an account that nobody made:", err)
	}
	key.Name = "kube-root-ca.crt"
	if err := admin.Get(test.Context(), key, &corev1.ConfigMap{}); !errors.IsNotFound(err) {
		test.Error("a map that nobody made:", err)
	}
	if err := admin.Delete(test.Context(), namespace); err != nil {
		test.Fatal(err)
	}
	if err := admin.Get(test.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil {
		test.Fatal(err)
	}
	if namespace.Status.Phase != corev1.NamespaceTerminating {
		test.Error("the namespace is", namespace.Status.Phase)
	}
}

func TestControllersRunWhereTheyAreNamed(test *testing.T) {
	test.Setenv("SKIFF_CONTROLLERS", "namespace-controller,serviceaccount-controller")
	environment := &envtest.Environment{}
	admin := newClient(test, start(test, environment))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "doomed"}}
	if err := admin.Create(test.Context(), namespace); err != nil {
		test.Fatal(err)
	}
	key := client.ObjectKey{Namespace: "doomed", Name: "default"}
	eventually.Holds(test, "there is an account", func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, key, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err := admin.Delete(test.Context(), namespace); err != nil {
		test.Fatal(err)
	}
	eventually.Gone(test, func(ctx context.Context) (*corev1.Namespace, error) {
		return namespace, admin.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	})
}

// asksAbout has a webhook asked, at a path, about boats that are created.
func asksAbout(path string) envtest.WebhookInstallOptions {
	policy := admissionv1.Fail
	return envtest.WebhookInstallOptions{
		MutatingWebhooks: []*admissionv1.MutatingWebhookConfiguration{{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
			ObjectMeta: metav1.ObjectMeta{Name: "harbour"},
			Webhooks: []admissionv1.MutatingWebhook{{
				Name:                    "boats.harbour.example.com",
				FailurePolicy:           &policy,
				TimeoutSeconds:          ptr.To(int32(30)),
				SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
				ClientConfig: admissionv1.WebhookClientConfig{
					Service: &admissionv1.ServiceReference{Name: "x", Namespace: "default", Path: &path},
				},
				Rules: []admissionv1.RuleWithOperations{{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule: admissionv1.Rule{
						APIGroups: []string{"harbour.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"boats"},
					},
				}},
			}},
		}},
	}
}

func TestWebhooksAreCalled(test *testing.T) {
	environment := &envtest.Environment{CRDInstallOptions: crds, WebhookInstallOptions: asksAbout("/mutate")}
	admin := newClient(test, start(test, environment))
	options := environment.WebhookInstallOptions
	server := webhook.NewServer(webhook.Options{
		Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
	})
	// Answers only what is sent without another slash.
	server.Register("/mutate", &webhook.Admission{Handler: admission.HandlerFunc(
		func(_ context.Context, request admission.Request) admission.Response {
			return admission.PatchResponseFromRaw(request.Object.Raw,
				bytes.Replace(request.Object.Raw, []byte(`"crew":1`), []byte(`"crew":7`), 1))
		})})
	ctx, cancel := context.WithCancel(test.Context())
	defer cancel()
	go server.Start(ctx)
	boat := newBoat("ark")
	eventually.Holds(test, "the webhook answers", func(ctx context.Context) (bool, error) {
		return admin.Create(ctx, boat.DeepCopy()) == nil, nil
	})
	if err := admin.Get(test.Context(), client.ObjectKeyFromObject(boat), boat); err != nil {
		test.Fatal(err)
	}
	if crew, _, _ := unstructured.NestedInt64(boat.Object, "spec", "crew"); crew != 7 {
		test.Error("the crew is", crew)
	}
}

func TestWatchesEndWithTheirDefinition(test *testing.T) {
	environment := &envtest.Environment{CRDInstallOptions: crds}
	config := start(test, environment)
	boats := dynamic.NewForConfigOrDie(config).
		Resource(schema.GroupVersionResource{Group: "harbour.example.com", Version: "v1", Resource: "boats"})
	watch, err := boats.Watch(test.Context(), metav1.ListOptions{})
	if err != nil {
		test.Fatal(err)
	}
	patch := func(text string) {
		definition := &unstructured.Unstructured{}
		definition.SetAPIVersion("apiextensions.k8s.io/v1")
		definition.SetKind("CustomResourceDefinition")
		definition.SetName("boats.harbour.example.com")
		err := newClient(test, config).Patch(test.Context(), definition, client.RawPatch(types.MergePatchType, []byte(text)))
		if err != nil {
			test.Fatal(err)
		}
	}
	patch(`{"metadata":{"labels":{"a":"b"}}}`)
	select {
	case event, open := <-watch.ResultChan():
		test.Error("a label does not make another definition:", event, open)
	case <-time.After(200 * time.Millisecond):
	}
	patch(`{"spec":{"names":{"categories":["boats"]}}}`)
	select {
	case event, open := <-watch.ResultChan():
		if open {
			test.Error(event)
		}
	case <-time.After(eventually.Max):
		test.Error("the watch goes on")
	}
}

func TestKubectlFindsItsServer(test *testing.T) {
	environment := &envtest.Environment{}
	start(test, environment)
	user, err := environment.AddUser(envtest.User{Name: "ops", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		test.Fatal(err)
	}
	kubectl, err := user.Kubectl()
	if err != nil {
		test.Fatal(err)
	}
	check := func() {
		stdout, stderr, err := kubectl.Run("get", "ns", "default")
		if err != nil {
			said, _ := readAll(stderr)
			test.Error(err, said)
			return
		}
		if text, _ := readAll(stdout); !strings.Contains(text, "Active") {
			test.Error(text)
		}
	}
	check()
	// The control plane has one of its own.
	kubectl = environment.ControlPlane.KubeCtl()
	check()
	// And where there is no other kubectl.
	test.Setenv("PATH", "")
	check()
}

// What the programs say is seen where their output is attached, and there a line a request.
func TestOutputIsAttached(test *testing.T) {
	file, err := os.Create(filepath.Join(test.TempDir(), "output"))
	if err != nil {
		test.Fatal(err)
	}
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = file, file
	test.Cleanup(func() { os.Stdout, os.Stderr = stdout, stderr })
	test.Setenv("SKIFF_TRACE", "requests")
	environment := &envtest.Environment{AttachControlPlaneOutput: true}
	environment.ControlPlane.GetAPIServer().Configure().Append("v", "2").Append("profiling", "false")
	admin := newClient(test, start(test, environment))
	if err := admin.Create(test.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "seen"}}); err != nil {
		test.Fatal(err)
	}
	eventually.Holds(test, "the request is told", func(context.Context) (bool, error) {
		text, err := os.ReadFile(file.Name())
		return strings.Contains(string(text), "create /api/v1/namespaces 201") && strings.Contains(string(text), "--profiling"), err
	})
}

func readAll(reader interface{ Read([]byte) (int, error) }) (string, error) {
	var buffer bytes.Buffer
	_, err := buffer.ReadFrom(reader)
	return buffer.String(), err
}

// Several environments stand side by side, and when they are stopped nothing is left.
func TestNothingIsLeft(test *testing.T) {
	folder := test.TempDir()
	test.Setenv("TMPDIR", folder)
	var environments []*envtest.Environment
	for range 10 {
		environment := &envtest.Environment{CRDInstallOptions: crds}
		config, err := environment.Start()
		if err != nil {
			test.Fatal(err)
		}
		environments = append(environments, environment)
		if err := newClient(test, config).Create(test.Context(), newBoat("ark")); err != nil {
			test.Error("they are not apart:", err)
		}
	}
	if count := len(processes.Children(test)); count != 20 {
		test.Error("there are", count, "processes")
	}
	for _, environment := range environments {
		if err := environment.Stop(); err != nil {
			test.Error(err)
		}
	}
	if left := processes.Children(test); len(left) > 0 {
		test.Error("there still are", left)
	}
	if left, _ := os.ReadDir(folder); len(left) > 0 {
		test.Error("there still are", left)
	}
}

// Anybody may ask for the version, and nobody without a name for the rest, as kube-apiserver has it by default.
func TestAnonymousUsersSeeTheVersionAlone(test *testing.T) {
	config := rest.AnonymousClientConfig(start(test, &envtest.Environment{}))
	client := kubernetes.NewForConfigOrDie(config)
	if _, err := client.ServerVersion(); err != nil {
		test.Error("version:", err)
	}
	if _, err := client.RESTClient().Get().AbsPath("/api").DoRaw(test.Context()); !errors.IsForbidden(err) {
		test.Error("api:", err)
	}
}

// Ends when its parent is killed.
func TestWhoIsKilledLeavesNothing(test *testing.T) {
	if os.Getenv("TO_BE_KILLED") != "" {
		if _, err := (&envtest.Environment{}).Start(); err != nil {
			test.Fatal(err)
		}
		fmt.Println("started", processes.Children(test))
		time.Sleep(time.Hour)
	}
	program, err := os.Executable()
	if err != nil {
		test.Fatal(err)
	}
	victim := exec.Command(program, "-test.run", "^TestWhoIsKilledLeavesNothing$")
	victim.Env = append(os.Environ(), "TO_BE_KILLED=yes", "TMPDIR="+test.TempDir())
	stdout, err := victim.StdoutPipe()
	if err == nil {
		err = victim.Start()
	}
	if err != nil {
		test.Fatal(err)
	}
	line := make([]byte, 200)
	count, _ := stdout.Read(line)
	ids := strings.Fields(strings.Trim(strings.TrimPrefix(string(line[:count]), "started"), " []\n"))
	if len(ids) != 2 {
		test.Fatal("it started", string(line[:count]))
	}
	victim.Process.Kill()
	victim.Wait()
	eventually.Holds(test, "its servers are gone", func(context.Context) (bool, error) {
		for _, id := range ids {
			if processes.Runs(id) {
				return false, nil
			}
		}
		return true, nil
	})
}
