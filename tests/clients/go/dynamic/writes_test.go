package dynamic

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
)

func TestScale(test *testing.T) {
	ctx := test.Context()
	config, client := harbour(test)
	launch(test, client, "daisy")
	found := memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(config))
	scales, err := scale.NewForConfig(
		config, restmapper.NewDeferredDiscoveryRESTMapper(found), dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(found))
	if err != nil {
		test.Fatal(err)
	}
	daisy, err := scales.Scales(namespace).Get(ctx, boats.GroupResource(), "daisy", metav1.GetOptions{})
	if err != nil || daisy.Spec.Replicas != 1 {
		test.Fatal(err, daisy)
	}
	daisy.Spec.Replicas = 3
	if daisy, err = scales.Scales(namespace).Update(ctx, boats.GroupResource(), daisy, metav1.UpdateOptions{}); err != nil || daisy.Spec.Replicas != 3 {
		test.Error("update:", err, daisy)
	}
	daisy, err = scales.Scales(namespace).Patch(ctx, boats, "daisy", types.MergePatchType, []byte(`{"spec": {"replicas": 5}}`), metav1.PatchOptions{})
	if err != nil || daisy.Spec.Replicas != 5 {
		test.Error("patch:", err, daisy)
	}
	object, err := client.Get(ctx, "daisy", metav1.GetOptions{})
	if crew, _, _ := unstructured.NestedInt64(object.Object, "spec", "crew"); err != nil || crew != 5 {
		test.Error(err, object)
	}
}

func TestServerSideApply(test *testing.T) {
	ctx := test.Context()
	_, client := harbour(test)
	port := func(port string) *unstructured.Unstructured {
		object := boat("daisy")
		object.Object["spec"] = map[string]any{"port": port}
		return object
	}
	object, err := client.Apply(ctx, "daisy", port("Hull"), metav1.ApplyOptions{FieldManager: "one"})
	if err != nil {
		test.Fatal(err)
	}
	again, err := client.Apply(ctx, "daisy", port("Hull"), metav1.ApplyOptions{FieldManager: "one"})
	if err != nil || again.GetResourceVersion() != object.GetResourceVersion() {
		test.Error("without a change:", err)
	}
	_, err = client.Apply(ctx, "daisy", port("Kiel"), metav1.ApplyOptions{FieldManager: "two"})
	if cause, has := errors.StatusCause(err, metav1.CauseTypeFieldManagerConflict); !errors.IsConflict(err) || !has || cause.Field != ".spec.port" {
		test.Error("of another's field:", err)
	}
	object, err = client.Apply(ctx, "daisy", port("Kiel"), metav1.ApplyOptions{FieldManager: "two", Force: true})
	if port, _, _ := unstructured.NestedString(object.Object, "spec", "port"); err != nil || port != "Kiel" {
		test.Error("by force:", err, object)
	}
	status := boat("daisy")
	status.Object["status"] = map[string]any{"aboard": int64(2)}
	object, err = client.ApplyStatus(ctx, "daisy", status, metav1.ApplyOptions{FieldManager: "three"})
	if aboard, _, _ := unstructured.NestedInt64(object.Object, "status", "aboard"); err != nil || aboard != 2 {
		test.Error("of the status:", err, object)
	}
}
