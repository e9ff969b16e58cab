package envtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
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

// tokenOf is what a token of the account "robot" claims, and for how many seconds its answer says that it lives.
func tokenOf(test *testing.T, config *rest.Config, seconds int64, bound *authenticationv1.BoundObjectReference) (map[string]any, int64) {
	test.Helper()
	accounts := kubernetes.NewForConfigOrDie(config).CoreV1().ServiceAccounts("default")
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds, BoundObjectRef: bound}}
	token, err := accounts.CreateToken(test.Context(), "robot", request, metav1.CreateOptions{})
	if err != nil {
		test.Fatal(err)
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token.Status.Token, ".")[1])
	claims := map[string]any{}
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}
	if err != nil {
		test.Fatal(err)
	}
	return claims, int64(token.Status.ExpirationTimestamp.Sub(token.CreationTimestamp.Time).Seconds())
}

// What the kubelet mounts into pods that ask for no token lives longer than it says.
func TestTokensOfPodsAreExtended(test *testing.T) {
	for _, extends := range []string{"true", "false"} {
		_, config := startWith(test, map[string]string{"service-account-extend-token-expiration": extends})
		admin := newClient(test, config)
		robot := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "robot"}}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "works"}}
		pod.Spec = corev1.PodSpec{ServiceAccountName: "robot", Containers: []corev1.Container{{Name: "c", Image: "i"}}}
		for _, object := range []client.Object{robot, pod} {
			if err := admin.Create(test.Context(), object); err != nil {
				test.Fatal(err)
			}
		}
		bound := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "works"}
		for _, check := range []struct {
			seconds int64
			bound   *authenticationv1.BoundObjectReference
			lives   float64
		}{{3607, bound, 31536000}, {3600, bound, 3600}, {3607, nil, 3607}} {
			expected := check.lives
			if extends == "false" {
				expected = float64(check.seconds)
			}
			claims, says := tokenOf(test, config, check.seconds, check.bound)
			about := claims["kubernetes.io"].(map[string]any)
			_, warns := about["warnafter"]
			if lives := claims["exp"].(float64) - claims["iat"].(float64); lives != expected || says != check.seconds || warns != (lives != float64(says)) {
				test.Error(extends, check.seconds, lives, says, about)
			}
		}
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

// Pages of the origins that are named may read answers, and ask beforehand without showing who they are.
func TestPagesOfOtherOriginsAreLetIn(test *testing.T) {
	_, config := startWith(test, map[string]string{"cors-allowed-origins": `//example\.com(:|$)`})
	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, check := range []struct {
		method, origin string
		code           int
		allows         bool
	}{
		{"OPTIONS", "https://example.com", 204, true},
		{"OPTIONS", "https://example.org", 403, false},
		{"GET", "https://example.com:8443", 403, true},
		{"GET", "", 403, false},
	} {
		request, err := http.NewRequestWithContext(test.Context(), check.method, config.Host+"/api/v1/pods", nil)
		if err != nil {
			test.Fatal(err)
		}
		request.Header.Set("Origin", check.origin)
		answer, err := browser.Do(request)
		if err != nil {
			test.Fatal(err)
		}
		answer.Body.Close()
		allowed := answer.Header.Get("Access-Control-Allow-Origin")
		if answer.StatusCode != check.code || (allowed != "") != check.allows || (check.allows && allowed != check.origin) {
			test.Error(check, answer.StatusCode, answer.Header)
		}
		if check.allows && answer.Header.Get("Access-Control-Allow-Methods") != "POST, GET, OPTIONS, PUT, DELETE, PATCH" {
			test.Error(answer.Header)
		}
	}
}

// A client that asks for a name is shown the certificate for it.
func TestACertificateIsShownByName(test *testing.T) {
	folder := test.TempDir()
	files := func(name string, names ...string) string {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			test.Fatal(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: names,
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		}
		certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			test.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			test.Fatal(err)
		}
		paths := [2]string{filepath.Join(folder, name+".crt"), filepath.Join(folder, name+".key")}
		for at, block := range []*pem.Block{{Type: "CERTIFICATE", Bytes: certificate}, {Type: "PRIVATE KEY", Bytes: private}} {
			if err := os.WriteFile(paths[at], pem.EncodeToMemory(block), 0o600); err != nil {
				test.Fatal(err)
			}
		}
		return strings.Join(paths[:], ",")
	}
	environment := &envtest.Environment{}
	environment.ControlPlane.GetAPIServer().Configure().
		Append("tls-sni-cert-key", files("own.example.com", "*.wild.example.com"), files("said")+":said.example.com")
	config := start(test, environment)
	for name, expected := range map[string]string{
		"own.example.com": "own.example.com", "a.wild.example.com": "own.example.com", "said.example.com": "said",
	} {
		connection, err := tls.Dial("tcp", strings.Trim(strings.TrimPrefix(config.Host, "https://"), "/"), &tls.Config{InsecureSkipVerify: true, ServerName: name})
		if err != nil {
			test.Fatal(err)
		}
		if shown := connection.ConnectionState().PeerCertificates[0].Subject.CommonName; shown != expected {
			test.Error(name, shown)
		}
		connection.Close()
	}
	// All others are shown what envtest trusts.
	if err := newClient(test, config).List(test.Context(), &corev1.NamespaceList{}); err != nil {
		test.Error(err)
	}
}
