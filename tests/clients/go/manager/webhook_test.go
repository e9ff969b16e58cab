package manager

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	skiff "github.com/kubeskiff/kubeskiff/helpers/go"
	"kubeskiff/tests/clients/go/eventually"
)

// customs registers boats, and lets none move to another port.
type customs struct{}

func (customs) Default(_ context.Context, boat *Boat) error {
	metav1.SetMetaDataLabel(&boat.ObjectMeta, "registered", "yes")
	return nil
}

func (customs) ValidateCreate(_ context.Context, boat *Boat) (admission.Warnings, error) {
	if boat.Spec.Crew > 10 {
		return admission.Warnings{"it will be crowded"}, nil
	}
	return nil, nil
}

func (customs) ValidateUpdate(_ context.Context, old, boat *Boat) (admission.Warnings, error) {
	if boat.Spec.Port != old.Spec.Port {
		return nil, fmt.Errorf("%s stays in %s", boat.Name, old.Spec.Port)
	}
	return nil, nil
}

func (customs) ValidateDelete(_ context.Context, boat *Boat) (admission.Warnings, error) {
	if boat.Annotations["moored"] != "" {
		return nil, fmt.Errorf("%s is moored", boat.Name)
	}
	return nil, nil
}

// certify writes the certificate of a server called name into a folder, with its key; it is its own authority.
func certify(test *testing.T, folder, name string) []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		test.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name},
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
	written := map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: certificate},
		"tls.key": {Type: "PRIVATE KEY", Bytes: private},
	}
	for file, block := range written {
		if err := os.WriteFile(filepath.Join(folder, file), pem.EncodeToMemory(block), 0o600); err != nil {
			test.Fatal(err)
		}
	}
	return pem.EncodeToMemory(written["tls.crt"])
}

// heard collects the warnings that a client is sent.
type heard struct {
	sync.Mutex
	bytes.Buffer
}

func (h *heard) HandleWarningHeader(_ int, _ string, text string) {
	h.Lock()
	defer h.Unlock()
	h.WriteString(text)
}

func TestWebhooks(test *testing.T) {
	ctrl.SetLogger(testr.New(test))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		test.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	// In a cluster the service would lead to the manager's pod; here the flag does.
	config := skiff.Start(test, skiff.CRDs("../boats"), skiff.Arguments("--webhook-service", fmt.Sprintf("harbour/customs=127.0.0.1:%d", port)))
	warnings := &heard{}
	config.WarningHandler = warnings
	folder := test.TempDir()
	authority := certify(test, folder, "customs.harbour.svc")
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:        newScheme(),
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: folder}),
	})
	if err == nil {
		err = setUpWebhooks(manager)
	}
	if err != nil {
		test.Fatal(err)
	}
	ctx, cancel := context.WithCancel(test.Context())
	ended := make(chan error)
	go func() { ended <- manager.Start(ctx) }()
	waitForWebhooks(test, manager)
	direct, err := client.New(config, client.Options{Scheme: manager.GetScheme()})
	if err != nil {
		test.Fatal(err)
	}
	mutating, validating := configurations(authority)
	for _, configuration := range []client.Object{mutating, validating} {
		if err := direct.Create(ctx, configuration); err != nil {
			test.Fatal(err)
		}
	}

	daisy := &Boat{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "daisy"}, Spec: BoatSpec{Crew: 11}}
	if err := direct.Create(ctx, daisy); err != nil || daisy.Labels["registered"] != "yes" {
		test.Error("it is registered:", err, daisy)
	}
	if warnings.String() != "it will be crowded" {
		test.Error(warnings.String())
	}
	moved := daisy.DeepCopy()
	moved.Spec.Port = "Kiel"
	denied := `admission webhook "validate.harbour.example.com" denied the request: `
	if err := direct.Update(ctx, moved); !errors.IsForbidden(err) || err.Error() != denied+"daisy stays in Hull" {
		test.Error(err)
	}
	daisy.Annotations = map[string]string{"moored": "yes"}
	if err := direct.Update(ctx, daisy); err != nil {
		test.Fatal(err)
	}
	if err := direct.Delete(ctx, daisy); err == nil || !strings.HasSuffix(err.Error(), denied+"daisy is moored") {
		test.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		test.Error("the manager did not stop well:", err)
	}
	if err := direct.Update(test.Context(), daisy); !errors.IsInternalError(err) {
		test.Error("nobody is there to ask:", err)
	}
}

func setUpWebhooks(manager ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(manager, &Boat{}).WithDefaulter(customs{}).WithValidator(customs{}).Complete()
}

func waitForWebhooks(test *testing.T, manager ctrl.Manager) {
	test.Helper()
	eventually.Holds(test, "the webhooks are served", func(context.Context) (bool, error) {
		return manager.GetWebhookServer().StartedChecker()(&http.Request{}) == nil, nil
	})
}

// configurations have the webhooks called where controller-runtime puts them.
func configurations(authority []byte) (*admissionv1.MutatingWebhookConfiguration, *admissionv1.ValidatingWebhookConfiguration) {
	service := func(path string) admissionv1.WebhookClientConfig {
		reference := &admissionv1.ServiceReference{Namespace: "harbour", Name: "customs", Path: &path}
		return admissionv1.WebhookClientConfig{Service: reference, CABundle: authority}
	}
	rules := []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.OperationAll},
		Rule:       admissionv1.Rule{APIGroups: []string{group.Group}, APIVersions: []string{"v1"}, Resources: []string{"boats"}},
	}}
	none := ptr.To(admissionv1.SideEffectClassNone)
	metadata := metav1.ObjectMeta{Name: "customs"}
	mutating := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metadata, Webhooks: []admissionv1.MutatingWebhook{{
		Name: "default.harbour.example.com", ClientConfig: service("/mutate-harbour-example-com-v1-boat"),
		Rules: rules, SideEffects: none, AdmissionReviewVersions: []string{"v1"},
	}}}
	validating := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metadata, Webhooks: []admissionv1.ValidatingWebhook{{
		Name: "validate.harbour.example.com", ClientConfig: service("/validate-harbour-example-com-v1-boat"),
		Rules: rules, SideEffects: none, AdmissionReviewVersions: []string{"v1"},
	}}}
	return mutating, validating
}
