package envtest

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Authorization modes beside RBAC. The texts were recorded from kube-apiserver 1.36.

// judge is a service that decides by the names of users, and notes what it was asked.
type judge struct {
	mutex sync.Mutex
	seen  []map[string]any
}

func (j *judge) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	review := map[string]any{}
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	spec := review["spec"].(map[string]any)
	j.mutex.Lock()
	j.seen = append(j.seen, spec)
	j.mutex.Unlock()
	status := map[string]any{"allowed": false}
	switch user, _ := spec["user"].(string); user {
	case "allowed":
		attributes, _ := spec["resourceAttributes"].(map[string]any)
		status["allowed"] = attributes["verb"] != "explode" && attributes["verb"] != "escalate"
	case "denied":
		status["denied"], status["reason"] = true, "never"
	case "unknown":
		status["reason"] = "no idea"
	case "broken":
		http.Error(out, "", http.StatusBadRequest)
		return
	}
	delete(review, "spec")
	review["status"] = status
	out.Header().Set("Content-Type", "application/json")
	json.NewEncoder(out).Encode(review)
}

// asked is how often the service was asked about a user.
func (j *judge) asked(user string) (specs []map[string]any) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for _, spec := range j.seen {
		if spec["user"] == user {
			specs = append(specs, spec)
		}
	}
	return specs
}

// serve starts the service, and gives the file that leads to it.
func serve(test *testing.T, service http.Handler) string {
	server := httptest.NewTLSServer(service)
	test.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	folder := test.TempDir()
	write(test, filepath.Join(folder, "ca.crt"), string(authority))
	kubeconfig := filepath.Join(folder, "kubeconfig")
	write(test, kubeconfig, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "a",
		"clusters": [{"name": "a", "cluster": {"server": "%s/access", "certificate-authority": "%s/ca.crt"}}],
		"users": [{"name": "a", "user": {}}], "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]}`,
		server.URL, folder))
	return kubeconfig
}

func write(test *testing.T, path string, text string) {
	test.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		test.Fatal(err)
	}
}

// as is a client for a user of an environment.
func as(test *testing.T, environment *envtest.Environment, name string, groups ...string) *rest.Config {
	test.Helper()
	user, err := environment.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		test.Fatal(err)
	}
	return user.Config()
}

// listed is what comes of a list of config maps.
func listed(test *testing.T, config *rest.Config) string {
	test.Helper()
	selected := metav1.ListOptions{LabelSelector: "team=x", FieldSelector: "metadata.name=a"}
	_, err := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default").List(test.Context(), selected)
	if err == nil {
		return ""
	}
	return err.Error()
}

func startWith(test *testing.T, flags map[string]string) (*envtest.Environment, *rest.Config) {
	test.Helper()
	environment := &envtest.Environment{}
	for name, value := range flags {
		environment.ControlPlane.GetAPIServer().Configure().Set(name, value)
	}
	return environment, start(test, environment)
}

func TestAWebhookDecides(test *testing.T) {
	judge := &judge{}
	environment, admin := startWith(test, map[string]string{
		"authorization-mode":                         "Webhook,RBAC",
		"authorization-webhook-config-file":          serve(test, judge),
		"authorization-webhook-version":              "v1",
		"authorization-webhook-cache-authorized-ttl": "1h",
		// Nothing that is not allowed is remembered.
		"authorization-webhook-cache-unauthorized-ttl": "0s",
	})
	cannot := `configmaps "a" is forbidden: User "%s" cannot list resource "configmaps" in API group "" in the namespace "default": %s`
	for user, expected := range map[string]string{
		"allowed": "",
		"denied":  fmt.Sprintf(cannot, "denied", "never"),
		"unknown": fmt.Sprintf(cannot, "unknown", "no idea"),
	} {
		config := as(test, environment, user)
		for range 2 {
			if told := listed(test, config); told != expected {
				test.Error(user, told)
			}
		}
	}
	told := listed(test, as(test, environment, "broken"))
	if !strings.Contains(told, "an error on the server") || !strings.Contains(told, "the server rejected our request for an unknown reason") {
		test.Error(told)
	}
	if allowed, denied := len(judge.asked("allowed")), len(judge.asked("denied")); allowed != 1 || denied != 2 {
		test.Error(allowed, denied)
	}
	attributes, _ := json.Marshal(judge.asked("denied")[0]["resourceAttributes"])
	selectors := `"fieldSelector":{"requirements":[{"key":"metadata.name","operator":"In","values":["a"]}]},` +
		`"labelSelector":{"requirements":[{"key":"team","operator":"In","values":["x"]}]},`
	expected := `{` + selectors + `"name":"a","namespace":"default","resource":"configmaps","verb":"list","version":"v1"}`
	if string(attributes) != expected {
		test.Error(string(attributes))
	}

	// Roles are asked after the service, and nobody about administrators.
	if told := listed(test, admin); told != "" || len(judge.asked("admin")) != 0 {
		test.Error(told, judge.asked("admin"))
	}
	reviews := kubernetes.NewForConfigOrDie(admin).AuthorizationV1()
	for user, expected := range map[string]authorizationv1.SubjectAccessReviewStatus{
		"allowed": {Allowed: true},
		"denied":  {Denied: true, Reason: "never"},
		"unknown": {Reason: "no idea"},
		"broken":  {EvaluationError: "the server rejected our request for an unknown reason"},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: "n"},
		}}
		answer, err := reviews.SubjectAccessReviews().Create(test.Context(), review, metav1.CreateOptions{})
		if err != nil || answer.Status != expected {
			test.Error(user, answer.Status, err)
		}
	}
	rules := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "n"}}
	known, err := reviews.SelfSubjectRulesReviews().Create(test.Context(), rules, metav1.CreateOptions{})
	if err != nil || !known.Status.Incomplete || known.Status.EvaluationError != "webhook authorizer does not support user rule resolution" {
		test.Error(known.Status, err)
	}
}

// An expression that asks who may do what waits for the service.
func TestExpressionsAskAWebhook(test *testing.T) {
	environment, config := startWith(test, map[string]string{
		"authorization-mode":                "Webhook",
		"authorization-webhook-config-file": serve(test, &judge{}),
	})
	admin := newClient(test, config)
	metadata := metav1.ObjectMeta{Name: "asks"}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metadata}
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{"CREATE"},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}}},
	}
	policy.Spec.Validations = []admissionregistrationv1.Validation{
		{Expression: "authorizer.group('').resource('pods').check('get').allowed()", Message: "pods can't be read"},
		{Expression: "authorizer.group('').resource('pods').check(object.metadata.name).allowed()", Message: "it may not be done"},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metadata}
	binding.Spec.PolicyName = "asks"
	binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{"Deny"}
	for _, object := range []client.Object{policy, binding} {
		if err := admin.Create(test.Context(), object); err != nil {
			test.Fatal(err)
		}
	}
	allowed := newClient(test, as(test, environment, "allowed"))
	create := func(name string) error {
		return allowed.Create(test.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	}
	if err := create("list"); err != nil {
		test.Error(err)
	}
	if err := create("explode"); err == nil || !strings.Contains(err.Error(), "it may not be done") {
		test.Error(err)
	}
}

// Whoever decides, nobody grants by roles more than they have by them.
func TestAWebhookDecidesWhoGrants(test *testing.T) {
	judge := &judge{}
	environment, admin := startWith(test, map[string]string{
		"authorization-mode":                "Webhook",
		"authorization-webhook-config-file": serve(test, judge),
	})
	grant := func(config *rest.Config, name string) error {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
		role.Rules = []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}}
		return newClient(test, config).Create(test.Context(), role)
	}
	if err := grant(admin, "a"); err != nil {
		test.Error(err)
	}
	allowed := as(test, environment, "allowed")
	if err := grant(allowed, "b"); err == nil || !strings.Contains(err.Error(), "is attempting to grant RBAC permissions not currently held") {
		test.Error(err)
	}
	// The right to bind is enough for a binding.
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "a"}
	if err := newClient(test, allowed).Create(test.Context(), binding); err != nil {
		test.Error(err)
	}
	asked := map[any]bool{}
	for _, spec := range judge.asked("allowed") {
		attributes, _ := spec["resourceAttributes"].(map[string]any)
		asked[attributes["verb"]] = true
	}
	if !asked["escalate"] || !asked["bind"] {
		test.Error(asked)
	}
}

func TestPoliciesOfAFileDecide(test *testing.T) {
	file := filepath.Join(test.TempDir(), "policies.jsonl")
	write(test, file, `# who reads
{"user": "reader", "readonly": true}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"group": "writers", "namespace": "default", "resource": "configmaps"}}
`)
	environment, _ := startWith(test, map[string]string{"authorization-mode": "ABAC", "authorization-policy-file": file})
	reader, writer := as(test, environment, "reader"), as(test, environment, "joe", "writers")
	if told := listed(test, reader); told != "" {
		test.Error(told)
	}
	newMap := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	}
	maps := func(config *rest.Config) error {
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default").Create(test.Context(), newMap(), metav1.CreateOptions{})
		return err
	}
	cannot := `configmaps is forbidden: User "reader" cannot create resource "configmaps" in API group "" in the namespace "default": No policy matched.`
	if err := maps(reader); err == nil || err.Error() != cannot {
		test.Error(err)
	}
	if err := maps(writer); err != nil {
		test.Error(err)
	}
	pods, err := kubernetes.NewForConfigOrDie(writer).CoreV1().Pods("default").List(test.Context(), metav1.ListOptions{})
	if !errors.IsForbidden(err) {
		test.Error(pods, err)
	}
}

// A file names webhooks, on which conditions they are asked, and what it comes to where they fail.
func TestAFileNamesWebhooks(test *testing.T) {
	judge := &judge{}
	file := filepath.Join(test.TempDir(), "authorization.yaml")
	write(test, file, fmt.Sprintf(`
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: judge
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}
    matchConditions:
    - expression: has(request.resourceAttributes) && request.resourceAttributes.resource == 'configmaps'
- type: RBAC
  name: rbac
`, serve(test, judge)))
	environment := &envtest.Environment{}
	// What envtest says of it would be said twice.
	environment.ControlPlane.GetAPIServer().Configure().Disable("authorization-mode").Set("authorization-config", file)
	admin := start(test, environment)
	allowed := as(test, environment, "allowed")
	if told := listed(test, allowed); told != "" {
		test.Error(told)
	}
	_, err := kubernetes.NewForConfigOrDie(allowed).CoreV1().Pods("default").List(test.Context(), metav1.ListOptions{})
	if !errors.IsForbidden(err) || len(judge.asked("allowed")) != 1 {
		test.Error(err, judge.asked("allowed"))
	}
	if told := listed(test, as(test, environment, "broken", "system:readers")); !strings.Contains(told, "an error on the server") {
		test.Error(told)
	}
	metrics, err := kubernetes.NewForConfigOrDie(admin).RESTClient().Get().AbsPath("/metrics").DoRaw(test.Context())
	if err != nil {
		test.Fatal(err)
	}
	// The pods are left to the roles.
	for _, line := range []string{
		`apiserver_authorization_decisions_total{type="Webhook",name="judge",decision="allowed"} 1`,
		`apiserver_authorization_webhook_evaluations_total{name="judge",result="success"} 1`,
		`apiserver_authorization_webhook_evaluations_total{name="judge",result="error"} 1`,
		`apiserver_authorization_webhook_duration_seconds_count{name="judge",result="success"} 1`,
		`apiserver_authorization_match_condition_exclusions_total{type="Webhook",name="judge"} 1`,
	} {
		if !strings.Contains(string(metrics), line+"\n") {
			test.Error("there is no", line)
		}
	}
}

// A service that hangs does not keep the API server.
func TestAStopDoesNotWaitForAWebhook(test *testing.T) {
	begun, done := make(chan struct{}, 1), make(chan struct{})
	hangs := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-done
	})
	kubeconfig := serve(test, hangs)
	// The service ends only when nothing hangs.
	test.Cleanup(func() { close(done) })
	environment, _ := startWith(test, map[string]string{
		"authorization-mode": "Webhook", "authorization-webhook-config-file": kubeconfig,
	})
	hanging := as(test, environment, "hanging")
	go kubernetes.NewForConfigOrDie(hanging).CoreV1().Pods("default").List(test.Context(), metav1.ListOptions{})
	<-begun
	if err := environment.ControlPlane.GetAPIServer().Stop(); err != nil {
		test.Error(err)
	}
}
