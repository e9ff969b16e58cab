package manager

import (
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"kubeskiff/tests/clients/go/processes"
)

// The same controller and the same webhooks on envtest, for a user who may do what they need, and over a restart of the API
// server.
func TestManagerOnEnvtest(test *testing.T) {
	ctrl.SetLogger(testr.New(test))
	// The libraries complain there of a server that is away.
	klog.SetLogger(logr.Discard())
	test.Cleanup(klog.ClearLogger)
	// Envtest has no garbage collector, which the controller counts on.
	test.Setenv("SKIFF_CONTROLLERS", "garbage-collector-controller")
	mutating, validating := configurations(nil)
	environment := &envtest.Environment{
		CRDInstallOptions: envtest.CRDInstallOptions{Paths: []string{"../boats"}, ErrorIfPathMissing: true},
		WebhookInstallOptions: envtest.WebhookInstallOptions{
			MutatingWebhooks:   []*admissionv1.MutatingWebhookConfiguration{mutating},
			ValidatingWebhooks: []*admissionv1.ValidatingWebhookConfiguration{validating},
		},
	}
	apiServer := environment.ControlPlane.GetAPIServer()
	// What is in a folder of one's own is the same after a restart.
	apiServer.CertDir = test.TempDir()
	// Servers of other tests may still be there.
	others := processes.Children(test)
	config, err := environment.Start()
	if err != nil {
		test.Fatal(err)
	}
	direct, err := client.New(config, client.Options{Scheme: newScheme()})
	if err != nil {
		test.Fatal(err)
	}
	options := environment.WebhookInstallOptions
	manager := prepare(test, harbourMaster(test, environment, direct), webhook.NewServer(webhook.Options{
		Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
	}))
	if err := setUpWebhooks(manager); err != nil {
		test.Fatal(err)
	}
	running := run(test, manager)
	<-running.Elected()
	waitForWebhooks(test, manager)
	harbour := harbour{running, direct}
	harbour.check(test)

	test.Run("its user may do no more than its role says", func(test *testing.T) {
		if err := manager.GetAPIReader().List(test.Context(), &corev1.NodeList{}); !errors.IsForbidden(err) {
			test.Error(err)
		}
	})

	test.Run("webhooks are asked", func(test *testing.T) { harbour.askCustoms(test, "tern") })

	test.Run("it goes on when the API server is there again", func(test *testing.T) {
		if err := apiServer.Stop(); err != nil {
			test.Fatal(err)
		}
		if err := apiServer.Start(); err != nil {
			test.Fatal(err)
		}
		harbour.launch(test, "late")
		harbour.askCustoms(test, "later")
	})

	running.stop()
	if err := environment.Stop(); err != nil {
		test.Error(err)
	}
	for _, id := range processes.Children(test) {
		if !slices.Contains(others, id) {
			test.Error("there still is", id)
		}
	}
}

// harbourMaster is the user that the manager runs as.
func harbourMaster(test *testing.T, environment *envtest.Environment, direct client.Client) *rest.Config {
	test.Helper()
	user, err := environment.AddUser(envtest.User{Name: "master", Groups: []string{"harbour"}}, nil)
	if err != nil {
		test.Fatal(err)
	}
	metadata := metav1.ObjectMeta{Name: "harbour-master"}
	any := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"*"}}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metadata, Rules: []rbacv1.PolicyRule{
		any(group.Group, "boats", "boats/status"),
		any("", "configmaps", "serviceaccounts", "events"),
		any("events.k8s.io", "events"),
		any("coordination.k8s.io", "leases"),
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metadata,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "harbour"}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := direct.Create(test.Context(), object); err != nil {
			test.Fatal(err)
		}
	}
	return user.Config()
}

// askCustoms creates a boat, which is registered, and is not let move it.
func (h harbour) askCustoms(test *testing.T, name string) {
	test.Helper()
	boat := h.launch(test, name)
	if boat.Labels["registered"] != "yes" {
		test.Error(boat)
	}
	before := boat.DeepCopy()
	boat.Spec.Port = "Kiel"
	if err := h.direct.Patch(test.Context(), boat, client.MergeFrom(before)); !errors.IsForbidden(err) {
		test.Error(err)
	}
}
