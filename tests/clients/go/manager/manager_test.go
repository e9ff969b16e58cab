// Package manager checks a controller of controller-runtime, with all that its manager brings.
package manager

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	skiff "github.com/kubeskiff/kubeskiff/helpers/go"
	"kubeskiff/tests/clients/go/eventually"
)

const namespace = "default"

// newScheme knows boats beside the built-in kinds.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(addToScheme(scheme))
	return scheme
}

// running is a manager, and how to stop it.
type running struct {
	ctrl.Manager
	stop func()
}

// prepare makes a manager with the controller of boats; it leads when no other one does.
func prepare(test *testing.T, config *rest.Config, webhooks webhook.Server) ctrl.Manager {
	test.Helper()
	retryPeriod := 100 * time.Millisecond
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        newScheme(),
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "harbour.example.com",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		RetryPeriod:                   &retryPeriod,
		WebhookServer:                 webhooks,
	})
	if err == nil {
		err = setUp(manager)
	}
	if err != nil {
		test.Fatal(err)
	}
	return manager
}

func run(test *testing.T, manager ctrl.Manager) running {
	ctx, cancel := context.WithCancel(test.Context())
	ended := make(chan error)
	go func() { ended <- manager.Start(ctx) }()
	return running{manager, func() {
		cancel()
		if err := <-ended; err != nil {
			test.Error("the manager did not stop well:", err)
		}
	}}
}

func TestManager(test *testing.T) {
	ctrl.SetLogger(testr.New(test))
	config := skiff.Start(test, skiff.CRDs("../boats"))
	first := run(test, prepare(test, config, nil))
	<-first.Elected()
	second := run(test, prepare(test, config, nil))
	// Reads past the cache.
	direct, err := client.New(config, client.Options{Scheme: first.GetScheme()})
	if err != nil {
		test.Fatal(err)
	}
	harbour{first, direct}.check(test)

	test.Run("the next one leads when the first has stopped", func(test *testing.T) {
		first.stop()
		<-second.Elected()
		harbour{second, direct}.launch(test, "late")
	})
	before := countStopped(test.Context(), direct)
	second.stop()
	// A manager sends its last event while it ends, or not at all. It would complain of a server that is gone.
	_ = wait.PollUntilContextTimeout(test.Context(), 20*time.Millisecond, 2*time.Second, true,
		func(ctx context.Context) (bool, error) { return countStopped(ctx, direct) > before, nil })
}

// countStopped counts the events in which managers say that they lead no more.
func countStopped(ctx context.Context, direct client.Client) (count int) {
	var events corev1.EventList
	if err := direct.List(ctx, &events, client.InNamespace(namespace)); err != nil {
		return 0
	}
	for _, event := range events.Items {
		if strings.HasSuffix(event.Message, "stopped leading") {
			count++
		}
	}
	return count
}

// harbour is a manager that leads, and a client beside it.
type harbour struct {
	running
	direct client.Client
}

func (h harbour) check(test *testing.T) {
	ctx := test.Context()
	daisy := h.launch(test, "daisy")

	test.Run("a boat owns its crew list", func(test *testing.T) {
		list := &corev1.ConfigMap{}
		if err := h.direct.Get(ctx, client.ObjectKeyFromObject(daisy), list); err != nil {
			test.Fatal(err)
		}
		if owner := metav1.GetControllerOf(list); owner == nil || owner.UID != daisy.UID || !*owner.BlockOwnerDeletion {
			test.Error(list)
		}
		if err := h.direct.Delete(ctx, list); err != nil {
			test.Fatal(err)
		}
		eventually.Holds(test, "it is there again", func(ctx context.Context) (bool, error) {
			again := &corev1.ConfigMap{}
			err := h.direct.Get(ctx, client.ObjectKeyFromObject(daisy), again)
			return err == nil && again.UID != list.UID, client.IgnoreNotFound(err)
		})
	})

	captain := &corev1.ServiceAccount{}
	test.Run("its captain is applied", func(test *testing.T) {
		err := h.direct.Get(ctx, client.ObjectKeyFromObject(daisy), captain)
		if err != nil || captain.Annotations["port"] != "Hull" {
			test.Error(err, captain)
		}
	})

	test.Run("an event is recorded for each list", func(test *testing.T) {
		found := &eventsv1.EventList{}
		eventually.Holds(test, "they are there", func(ctx context.Context) (bool, error) {
			err := h.direct.List(ctx, found, client.InNamespace(namespace), client.MatchingFields{"reason": "Listed"})
			return len(found.Items) == 2, err
		})
		if event := found.Items[0]; event.Regarding.UID != daisy.UID || event.Note != "1 are on the list" {
			test.Error(event)
		}
	})

	test.Run("a change is followed", func(test *testing.T) {
		before := daisy.DeepCopy()
		daisy.Spec.Crew = 5
		if err := h.direct.Patch(ctx, daisy, client.MergeFrom(before)); err != nil {
			test.Fatal(err)
		}
		daisy = h.waitFor(test, "daisy", func(daisy *Boat) bool { return daisy.Status.Aboard == 5 })
		if daisy.Generation != before.Generation+1 {
			test.Error("a status does not make a new generation:", daisy)
		}
	})

	test.Run("what is watched for its metadata alone is followed", func(test *testing.T) {
		key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "key", Labels: map[string]string{keyOf: "daisy"}}}
		if err := h.direct.Create(ctx, key); err != nil {
			test.Fatal(err)
		}
		daisy = h.waitFor(test, "daisy", func(daisy *Boat) bool {
			return meta.IsStatusConditionTrue(daisy.Status.Conditions, "Locked")
		})
	})

	test.Run("boats are found by port", func(test *testing.T) {
		kiel := &unstructured.Unstructured{}
		kiel.SetGroupVersionKind(group.WithKind("Boat"))
		kiel.SetNamespace(namespace)
		kiel.SetName("heron")
		kiel.Object["spec"] = map[string]any{"port": "Kiel"}
		if err := h.direct.Apply(ctx, client.ApplyConfigurationFromUnstructured(kiel), client.FieldOwner("checks")); err != nil {
			test.Fatal(err)
		}
		h.waitFor(test, "heron", func(heron *Boat) bool { return heron.Status.Aboard == 1 })
		// The cache has an index, the server a selectable field.
		for what, reader := range map[string]client.Reader{"cache": h.GetClient(), "server": h.GetAPIReader()} {
			found := &BoatList{}
			err := reader.List(ctx, found, client.InNamespace(namespace), client.MatchingFields{byPort: "Kiel"})
			if err != nil || len(found.Items) != 1 || found.Items[0].Name != "heron" {
				test.Error(what, err, found)
			}
		}
	})

	test.Run("a status of an older state is refused", func(test *testing.T) {
		older := daisy.DeepCopy()
		daisy.Status.Aboard = 6
		if err := h.direct.Status().Update(ctx, daisy); err != nil || daisy.Status.Aboard != 6 || daisy.Spec.Crew != 5 {
			test.Error(err, daisy)
		}
		if err := h.direct.Status().Update(ctx, older); !errors.IsConflict(err) {
			test.Error(err)
		}
	})

	test.Run("a boat goes when its finalizer has run", func(test *testing.T) {
		if err := h.direct.Delete(ctx, daisy); err != nil {
			test.Fatal(err)
		}
		eventually.Gone(test, func(ctx context.Context) (*Boat, error) {
			return daisy, h.direct.Get(ctx, client.ObjectKeyFromObject(daisy), daisy)
		})
		if err := h.direct.Get(ctx, client.ObjectKeyFromObject(daisy), &corev1.ConfigMap{}); !errors.IsNotFound(err) {
			test.Error("the crew list is left:", err)
		}
	})

	test.Run("what it owned is collected", func(test *testing.T) {
		eventually.Gone(test, func(ctx context.Context) (*corev1.ServiceAccount, error) {
			return captain, h.direct.Get(ctx, client.ObjectKeyFromObject(captain), captain)
		})
	})
}

// launch creates a boat and waits until the controller has done all that it does.
func (h harbour) launch(test *testing.T, name string) *Boat {
	if err := h.direct.Create(test.Context(), &Boat{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: BoatSpec{Crew: 1}}); err != nil {
		test.Fatal(err)
	}
	return h.waitFor(test, name, func(boat *Boat) bool { return boat.Status.Aboard == 1 })
}

func (h harbour) waitFor(test *testing.T, name string, condition func(*Boat) bool) *Boat {
	boat := &Boat{}
	eventually.Holds(test, "the status is written", func(ctx context.Context) (bool, error) {
		err := h.direct.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, boat)
		return err == nil && condition(boat), err
	})
	return boat
}
