package manager

import (
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	skiff "github.com/kubeskiff/kubeskiff/helpers/go"
)

// What the client has beside the verbs that the manager's controller uses.
func TestClient(test *testing.T) {
	ctx, config, scheme := test.Context(), skiff.Start(test), newScheme()
	// As tests with envtest do it.
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{"../boats"}}); err != nil {
		test.Fatal(err)
	}
	boats, err := client.NewWithWatch(config, client.Options{Scheme: scheme, FieldOwner: "checks", FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		test.Fatal(err)
	}
	changes, err := boats.Watch(ctx, &BoatList{}, client.InNamespace(namespace))
	if err != nil {
		test.Fatal(err)
	}
	defer changes.Stop()
	daisy := &Boat{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "daisy-", Labels: map[string]string{"a": "b"}}, Spec: BoatSpec{Crew: 2}}
	if err := boats.Create(ctx, daisy.DeepCopy(), client.DryRunAll); err != nil {
		test.Error("dry run:", err)
	}
	if err := boats.Create(ctx, daisy); err != nil {
		test.Fatal(err)
	}
	if event := <-changes.ResultChan(); event.Type != watch.Added || event.Object.(*Boat).UID != daisy.UID {
		test.Error(event)
	}
	if manager := daisy.ManagedFields[0].Manager; manager != "checks" {
		test.Error("the field owner is", manager)
	}

	test.Run("scale", func(test *testing.T) {
		scale := &autoscalingv1.Scale{}
		if err := boats.SubResource("scale").Get(ctx, daisy, scale); err != nil || scale.Spec.Replicas != 2 {
			test.Fatal(err, scale)
		}
		scale.Spec.Replicas = 4
		if err := boats.SubResource("scale").Update(ctx, daisy, client.WithSubResourceBody(scale)); err != nil {
			test.Error(err)
		}
		if err := boats.Get(ctx, client.ObjectKeyFromObject(daisy), daisy); err != nil || daisy.Spec.Crew != 4 {
			test.Error(err, daisy)
		}
	})

	test.Run("patches", func(test *testing.T) {
		list := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "list"}, Data: map[string]string{"a": "b"}}
		for _, want := range []controllerutil.OperationResult{controllerutil.OperationResultCreated, controllerutil.OperationResultNone} {
			done, err := controllerutil.CreateOrPatch(ctx, boats, list, func() error {
				return controllerutil.SetOwnerReference(daisy, list, scheme)
			})
			if err != nil || done != want {
				test.Error(done, err)
			}
		}
		before := list.DeepCopy()
		list.Data["c"] = "d"
		if err := boats.Patch(ctx, list, client.StrategicMergeFrom(before)); err != nil || len(list.Data) != 2 {
			test.Error(err, list)
		}
		// Custom kinds have no strategic merge.
		err := boats.Patch(ctx, daisy, client.StrategicMergeFrom(daisy.DeepCopy()))
		if !errors.IsUnsupportedMediaType(err) {
			test.Error(err)
		}
	})

	test.Run("an unknown field is an error", func(test *testing.T) {
		unknown := client.RawPatch(client.Merge.Type(), []byte(`{"spec": {"colour": "red"}}`))
		if err := boats.Patch(ctx, daisy, unknown); !errors.IsInvalid(err) {
			test.Error(err)
		}
	})

	test.Run("pages", func(test *testing.T) {
		if err := boats.Create(ctx, &Boat{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "heron"}}); err != nil {
			test.Fatal(err)
		}
		page := &BoatList{}
		if err := boats.List(ctx, page, client.Limit(1)); err != nil || len(page.Items) != 1 || *page.RemainingItemCount != 1 {
			test.Fatal(err, page)
		}
		if err := boats.List(ctx, page, client.Limit(1), client.Continue(page.Continue)); err != nil || page.Items[0].Name != "heron" {
			test.Error(err, page)
		}
	})

	test.Run("delete all of", func(test *testing.T) {
		options := []client.DeleteAllOfOption{client.InNamespace(namespace), client.HasLabels{"a"}, client.PropagationPolicy(metav1.DeletePropagationBackground)}
		if err := boats.DeleteAllOf(ctx, &Boat{}, options...); err != nil {
			test.Fatal(err)
		}
		left := &metav1.PartialObjectMetadataList{}
		left.SetGroupVersionKind(group.WithKind("BoatList"))
		if err := boats.List(ctx, left); err != nil || len(left.Items) != 1 || left.Items[0].Name != "heron" {
			test.Error(err, left)
		}
	})
}
