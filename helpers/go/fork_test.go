package skiff_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	skiff "github.com/kubeskiff/kubeskiff/helpers/go"
)

func init() {
	skiff.Prepare(func(config *rest.Config) error {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		_, err = client.CoreV1().ConfigMaps("default").Create(context.Background(), configMap("prepared"), metav1.CreateOptions{})
		return err
	}, skiff.CRDs(definitions))
}

// A hundred tests, each with a copy of a prepared control plane, a fault and a clock of its own.
func TestHundredForksSideBySide(t *testing.T) {
	for number := range 100 {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			t.Parallel()
			plane := skiff.Prepared(t).Fork(t)
			maps := clientOf(t, plane.Config).CoreV1().ConfigMaps("default")
			year := 2030 + number
			if err := plane.Clock().Set(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
				t.Fatal(err)
			}
			fault := plane.Inject(t, skiff.Fault{
				Match: skiff.Match{Verbs: []string{"create"}, Resource: "configmaps"},
				Times: 1,
				Error: &skiff.Failure{Code: http.StatusForbidden},
			})
			name := fmt.Sprintf("settings-%d", number)
			if _, err := maps.Create(t.Context(), configMap(name), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
				t.Fatalf("the first creation is refused, not: %v", err)
			}
			made, err := maps.Create(t.Context(), configMap(name), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if made.CreationTimestamp.UTC().Year() != year {
				t.Errorf("it was made in %s", made.CreationTimestamp)
			}
			if hits, err := fault.Hits(); err != nil || hits != 1 {
				t.Errorf("the fault was met %d times: %v", hits, err)
			}
			list, err := maps.List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, item := range list.Items {
				names = append(names, item.Name)
			}
			names = slices.DeleteFunc(names, func(name string) bool { return name == "kube-root-ca.crt" })
			if !slices.Equal(names, []string{"prepared", name}) {
				t.Errorf("there is %s", names)
			}
		})
	}
}

func TestAForkHasWhatWasPrepared(t *testing.T) {
	config := skiff.Fork(t)
	isServed(t, config)
	maps := clientOf(t, config).CoreV1().ConfigMaps("default")
	if _, err := maps.Get(t.Context(), "prepared", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestAForkHasControllersAndNodesOfItsOwn(t *testing.T) {
	large := clientOf(t, skiff.Fork(t, skiff.Profile("cluster"), skiff.Controllers("*", "-cronjob"), skiff.SimulateNodes("1,cpu=4")))
	for {
		node, err := large.CoreV1().Nodes().Get(t.Context(), "node-0", metav1.GetOptions{})
		if err == nil {
			if cpu := node.Status.Capacity.Cpu().Value(); cpu != 4 {
				t.Errorf("a node has %d processors", cpu)
			}
			break
		}
		if !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	nodes, err := clientOf(t, skiff.Fork(t)).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 0 {
		t.Errorf("another copy has %d nodes: %v", len(nodes.Items), err)
	}
	if _, err := skiff.Prepared(t).OpenFork(skiff.Profile("huge")); err == nil || !strings.Contains(err.Error(), "the profile `huge`") {
		t.Error(err)
	}
}

func TestAForkKnowsWhatItWasAsked(t *testing.T) {
	first := skiff.New(t)
	fork := first.Fork(t)
	second := fork.Fork(t)
	if _, err := clientOf(t, second.Config).CoreV1().ConfigMaps("default").Get(t.Context(), "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	asked := func(plane *skiff.ControlPlane) bool {
		return strings.Contains(strings.Join(plane.Log(), "\n"), "get /api/v1/namespaces/default/configmaps/none 404")
	}
	for !asked(second) {
		time.Sleep(time.Millisecond)
	}
	if asked(fork) {
		t.Error("the copy says what another one was asked")
	}
	if err := errors.Join(second.Stop(), second.Stop()); err != nil {
		t.Error(err)
	}
}

func TestAClockIsFrozenMovedAndReset(t *testing.T) {
	clock := skiff.New(t).Clock()
	start := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	if err := errors.Join(clock.Set(start), clock.Freeze(), clock.Set(start), clock.Advance(90*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if now, err := clock.Now(); err != nil || !now.Equal(start.Add(90*time.Minute)) {
		t.Errorf("it shows %s: %v", now, err)
	}
	if err := errors.Join(clock.Run(), clock.Reset()); err != nil {
		t.Fatal(err)
	}
	if now, err := clock.Now(); err != nil || time.Since(now).Abs() > time.Minute {
		t.Errorf("it shows %s: %v", now, err)
	}
}

func TestAFaultThatMakesNoSenseIsRefused(t *testing.T) {
	_, err := skiff.New(t).AddFault(skiff.Fault{Conflict: true, Stale: 2})
	if err == nil || !strings.Contains(err.Error(), "a fault does one thing, not stale and conflict") {
		t.Error(err)
	}
}
