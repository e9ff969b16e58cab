package dynamic

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"

	skiff "github.com/kubeskiff/kubeskiff/helpers/go"
	"kubeskiff/tests/clients/go/eventually"
)

// A watcher that goes on where its watch has ended begins anew at the last bookmark, where it has seen no event.
func TestRetryWatcher(test *testing.T) {
	_, client := harbour(test)
	list, err := client.List(test.Context(), metav1.ListOptions{})
	if err != nil {
		test.Fatal(err)
	}
	starts := make(chan string, 10)
	source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		starts <- options.ResourceVersion
		soon := int64(3)
		options.TimeoutSeconds, options.LabelSelector = &soon, "name=heron"
		return client.Watch(ctx, options)
	}}
	watcher, err := watchtools.NewRetryWatcherWithContext(test.Context(), list.GetResourceVersion(), source)
	if err != nil {
		test.Fatal(err)
	}
	defer watcher.Stop()
	if start := <-starts; start != list.GetResourceVersion() {
		test.Error("the first watch begins at", start)
	}
	daisy, err := client.Create(test.Context(), boat("daisy"), metav1.CreateOptions{})
	if err != nil {
		test.Fatal(err)
	}
	if start := <-starts; start != daisy.GetResourceVersion() {
		test.Error("the second watch begins at", start)
	}
	launch(test, client, "heron")
	event := <-watcher.ResultChan()
	if event.Type != watch.Added || event.Object.(*unstructured.Unstructured).GetName() != "heron" {
		test.Error(event)
	}
}

// Two candidates: the second leads once the first has stepped down.
func TestLeaderElection(test *testing.T) {
	client := kubernetes.NewForConfigOrDie(skiff.Start(test))
	elect := func(identity string) (leading chan struct{}, stepDown func()) {
		// It tells what it does, the end of its context as an error.
		ctx, cancel := context.WithCancel(klog.NewContext(test.Context(), testr.New(test)))
		leading, stopped := make(chan struct{}), make(chan struct{})
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, "harbour-master",
			client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity})
		if err != nil {
			test.Fatal(err)
		}
		go func() {
			defer close(stopped)
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: lock, ReleaseOnCancel: true,
				LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 100 * time.Millisecond,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { close(leading) },
					OnStoppedLeading: func() {},
				},
			})
		}()
		return leading, func() { cancel(); <-stopped }
	}
	holder := func() string {
		lease, err := client.CoordinationV1().Leases(namespace).Get(test.Context(), "harbour-master", metav1.GetOptions{})
		if err != nil {
			test.Fatal(err)
		}
		return *lease.Spec.HolderIdentity
	}
	firstLeads, firstStepsDown := elect("first")
	<-firstLeads
	secondLeads, secondStepsDown := elect("second")
	if holder() != "first" {
		test.Error(holder())
	}
	firstStepsDown()
	<-secondLeads
	if holder() != "second" {
		test.Error(holder())
	}
	secondStepsDown()
	if holder() != "" {
		test.Error(holder(), "has gone, and holds it")
	}
}

// A sink that tells when a patch is answered.
type answeredSink struct {
	events.EventSink
	patched chan struct{}
}

func (sink answeredSink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	defer func() { sink.patched <- struct{}{} }()
	return sink.EventSink.Patch(ctx, event, data)
}

// What a recorder says twice is one event that counts; either API shows what was recorded by way of the other.
func TestEventRecorders(test *testing.T) {
	ctx := test.Context()
	client := kubernetes.NewForConfigOrDie(skiff.Start(test))
	about := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "about", Namespace: namespace, UID: "1"}}

	test.Run("core/v1", func(test *testing.T) {
		broadcaster := record.NewBroadcaster()
		defer broadcaster.Shutdown()
		broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
		recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "checks"})
		for range 3 {
			recorder.Event(about, corev1.EventTypeNormal, "Counted", "once more")
		}
		eventually.Holds(test, "it has counted", func(ctx context.Context) (bool, error) {
			found, err := client.CoreV1().Events(namespace).SearchWithContext(ctx, scheme.Scheme, about)
			return err == nil && len(found.Items) == 1 && found.Items[0].Count == 3, err
		})
	})

	test.Run("events.k8s.io/v1", func(test *testing.T) {
		sink := answeredSink{&events.EventSinkImpl{Interface: client.EventsV1()}, make(chan struct{}, 8)}
		broadcaster := events.NewBroadcaster(sink)
		defer broadcaster.Shutdown()
		if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			test.Fatal(err)
		}
		recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/checks")
		recorded := func(count int32) func(context.Context) (bool, error) {
			recorder.Eventf(about, nil, corev1.EventTypeWarning, "Repeated", "Testing", "for the %s time", "nth")
			return func(ctx context.Context) (bool, error) {
				found, err := client.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Repeated"})
				if err != nil || len(found.Items) != 1 {
					return false, err
				}
				series := found.Items[0].Series
				return count == 1 && series == nil || series != nil && series.Count == count, nil
			}
		}
		eventually.Holds(test, "there is one", recorded(1))
		eventually.Holds(test, "there is a series", recorded(2))
		// The series is stored before its patch is answered, and a shutdown cancels what is not answered.
		select {
		case <-sink.patched:
		case <-ctx.Done():
			test.Error("the patch is not answered")
		}
	})

	test.Run("one store", func(test *testing.T) {
		core, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=about,type=Warning"})
		if err != nil || len(core.Items) != 1 || core.Items[0].Message != "for the nth time" {
			test.Error(err, core)
		}
		newer, err := client.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Counted"})
		if err != nil || len(newer.Items) != 1 || newer.Items[0].Note != "once more" || newer.Items[0].DeprecatedCount != 3 {
			test.Error(err, newer)
		}
	})
}
