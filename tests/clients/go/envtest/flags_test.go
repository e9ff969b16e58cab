package envtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"kubeskiff/tests/clients/go/eventually"
)

// Flags of kube-apiserver beside those that envtest sets itself.

func TestEventsGoAtTheirTime(test *testing.T) {
	environment := &envtest.Environment{}
	environment.ControlPlane.GetAPIServer().Configure().Set("event-ttl", "1s")
	admin := newClient(test, start(test, environment))
	metadata := metav1.ObjectMeta{Namespace: "default", Name: "seen"}
	event := &corev1.Event{
		ObjectMeta: metadata, Reason: "Seen", InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "a"},
	}
	if err := admin.Create(test.Context(), event); err != nil {
		test.Fatal(err)
	}
	eventually.Gone(test, func(ctx context.Context) (*corev1.Event, error) {
		return event, admin.Get(ctx, client.ObjectKeyFromObject(event), event)
	})
}

// warned notes the warnings that a client is sent.
type warned []string

func (w *warned) HandleWarningHeader(_ int, _ string, text string) {
	*w = append(*w, text)
}

func TestTokensLiveNoLongerThanTheyMay(test *testing.T) {
	environment := &envtest.Environment{}
	environment.ControlPlane.GetAPIServer().Configure().Set("service-account-max-token-expiration", "2h")
	config := start(test, environment)
	warnings := &warned{}
	config.WarningHandler = warnings
	accounts := kubernetes.NewForConfigOrDie(config).CoreV1().ServiceAccounts("default")
	robot := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
	if _, err := accounts.Create(test.Context(), robot, metav1.CreateOptions{}); err != nil {
		test.Fatal(err)
	}
	for asked, expected := range map[int64]int64{3600: 3600, 7200: 7200, 86400: 7200} {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(asked)}}
		token, err := accounts.CreateToken(test.Context(), "robot", request, metav1.CreateOptions{})
		if err != nil {
			test.Fatal(err)
		}
		lives := token.Status.ExpirationTimestamp.Sub(token.CreationTimestamp.Time)
		if *token.Spec.ExpirationSeconds != expected || lives != time.Duration(expected)*time.Second {
			test.Error(asked, *token.Spec.ExpirationSeconds, lives)
		}
	}
	if told := fmt.Sprint(*warnings); told != "[requested expiration of 86400 seconds shortened to 7200 seconds]" {
		test.Error(told)
	}
}

// secondOn starts another API server on the etcd of an environment.
func secondOn(test *testing.T, environment *envtest.Environment, flags map[string]string) *rest.Config {
	test.Helper()
	second := &envtest.ControlPlane{}
	second.GetAPIServer().EtcdURL = environment.ControlPlane.Etcd.URL
	for name, value := range flags {
		second.GetAPIServer().Configure().Set(name, value)
	}
	if err := second.GetAPIServer().Start(); err != nil {
		test.Fatal(err)
	}
	test.Cleanup(func() { second.GetAPIServer().Stop() })
	user, err := second.AddUser(envtest.User{Name: "ops", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		test.Fatal(err)
	}
	user.Config().QPS = -1
	return user.Config()
}

// API servers with different prefixes of their keys see nothing of each other, on one etcd.
func TestPrefixesAreApart(test *testing.T) {
	environment := &envtest.Environment{}
	one := newClient(test, start(test, environment))
	other := newClient(test, secondOn(test, environment, map[string]string{"etcd-prefix": "/other"}))
	same := newClient(test, secondOn(test, environment, map[string]string{"etcd-prefix": "registry/"}))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "seen"}}
	if err := one.Create(test.Context(), namespace); err != nil {
		test.Fatal(err)
	}
	if err := same.Get(test.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil {
		test.Error("the prefix is the same:", err)
	}
	if err := other.Get(test.Context(), client.ObjectKeyFromObject(namespace), namespace); !errors.IsNotFound(err) {
		test.Error("the prefix is another:", err)
	}
}

// The audit log is put aside when it is full, and has lines of the older form.
func TestTheAuditLogIsRotated(test *testing.T) {
	folder := test.TempDir()
	policy, log := filepath.Join(folder, "policy.yaml"), filepath.Join(folder, "logs", "audit.log")
	text := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		test.Fatal(err)
	}
	environment := &envtest.Environment{}
	flags := environment.ControlPlane.GetAPIServer().Configure()
	flags.Set("audit-policy-file", policy).Set("audit-log-path", log).Set("audit-log-format", "legacy")
	flags.Set("audit-log-maxsize", "1").Set("audit-log-maxbackup", "1").Set("audit-log-maxage", "3")
	config := start(test, environment)
	config.QPS = -1
	admin := kubernetes.NewForConfigOrDie(config)
	long := strings.Repeat("x", 50_000)
	older := func() []string {
		found, err := filepath.Glob(filepath.Join(folder, "logs", "audit-*.log"))
		if err != nil {
			test.Fatal(err)
		}
		return found
	}
	seen := map[string]bool{}
	for range 3 * 1024 * 1024 / len(long) {
		if err := admin.RESTClient().Get().AbsPath("/version").Param("long", long).Do(test.Context()).Error(); err != nil {
			test.Fatal(err)
		}
		for _, name := range older() {
			seen[name] = true
		}
	}
	if len(seen) < 2 {
		test.Error("it was put aside", len(seen), "times")
	}
	eventually.Holds(test, "one is left", func(context.Context) (bool, error) { return len(older()) == 1, nil })
	found, err := os.ReadFile(older()[0])
	if err != nil || !strings.Contains(string(found), ` AUDIT: id="`) || !strings.Contains(string(found), `method="get"`) {
		test.Error(err, string(found[:min(len(found), 200)]))
	}
}

// A policy has the objects of requests and answers in the log, with their defaults, and leaves out what it says.
func TestTheAuditLogHasObjects(test *testing.T) {
	folder := test.TempDir()
	policy, log := filepath.Join(folder, "policy.yaml"), filepath.Join(folder, "audit.log")
	text := `{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [
	  {level: Metadata, resources: [{group: "", resources: [secrets]}]},
	  {level: RequestResponse, omitManagedFields: true, resources: [{group: "", resources: [pods]}]},
	  {level: Request, resources: [{group: "", resources: [services]}]}]}`
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		test.Fatal(err)
	}
	environment := &envtest.Environment{}
	environment.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policy).Set("audit-log-path", log)
	made := newClient(test, start(test, environment))
	meta := metav1.ObjectMeta{Name: "one", Namespace: "default"}
	service := corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}
	container := corev1.Container{Name: "c", Image: "i"}
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"k": "hidden"}},
		&corev1.Service{ObjectMeta: meta, Spec: service},
		&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{container}}},
	} {
		if err := made.Create(test.Context(), object); err != nil {
			test.Fatal(err)
		}
	}
	if err := made.Delete(test.Context(), &corev1.Pod{ObjectMeta: meta}, client.GracePeriodSeconds(0)); err != nil {
		test.Fatal(err)
	}
	expected := map[string][]string{
		"create secrets":  {`"level":"Metadata"`, `"name":"one"`},
		"create services": {`"requestObject":{"kind":"Service"`, `"sessionAffinity":"None"`},
		"create pods":     {`"requestObject":{"kind":"Pod"`, `"dnsPolicy":"ClusterFirst"`, `"responseObject":{"kind":"Pod"`, `"uid":"`},
		"delete pods":     {`"requestObject":{"kind":"DeleteOptions","apiVersion":"meta.k8s.io/__internal","gracePeriodSeconds":0`},
	}
	unexpected := map[string][]string{
		"create secrets": {"Object", "hidden"}, "create services": {"responseObject"}, "create pods": {"managedFields"},
	}
	eventually.Holds(test, "the log has the events", func(context.Context) (bool, error) {
		found, err := os.ReadFile(log)
		return strings.Contains(string(found), `"verb":"delete"`), err
	})
	found, err := os.ReadFile(log)
	if err != nil {
		test.Fatal(err)
	}
	lines := map[string]string{}
	for line := range strings.Lines(string(found)) {
		var event struct {
			Verb      string
			ObjectRef struct{ Resource string }
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			test.Fatal(err, line)
		}
		lines[event.Verb+" "+event.ObjectRef.Resource] += line
	}
	for name, parts := range expected {
		for _, part := range parts {
			if !strings.Contains(lines[name], part) {
				test.Error(name, "lacks", part, "in", lines[name])
			}
		}
		for _, part := range unexpected[name] {
			if strings.Contains(lines[name], part) {
				test.Error(name, "has", part, "in", lines[name])
			}
		}
	}
}
