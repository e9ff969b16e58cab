package typed

import (
	"context"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"

	"kubeskiff/tests/clients/go/eventually"
)

type object interface {
	metav1.Object
	runtime.Object
	comparable
}

// client is what the typed clients of all kinds have; a is their apply configuration.
type client[t object, list runtime.Object, a any] interface {
	Create(context.Context, t, metav1.CreateOptions) (t, error)
	Update(context.Context, t, metav1.UpdateOptions) (t, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
	Get(context.Context, string, metav1.GetOptions) (t, error)
	List(context.Context, metav1.ListOptions) (list, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (t, error)
	Apply(context.Context, a, metav1.ApplyOptions) (t, error)
}

// collection is what the clients of all kinds have, too, though that of namespaces does not tell.
type collection interface {
	DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error
}

// kind is a built-in kind, and what the checks need to know of it.
type kind[t object, list runtime.Object, a any] struct {
	client client[t, list, a]
	// names are of two objects.
	names [2]string
	// make gives a valid object.
	make func(name string) t
	// stored turns what make gives into what is stored, but for the metadata that all objects have.
	stored func(t)
	// apply gives an object without fields but these annotations.
	apply func(name string, annotations map[string]string) a
	// noCollection tells that objects are deleted one by one alone.
	noCollection bool
}

// check goes through all verbs with objects of one kind.
func (k kind[t, list, a]) check(test *testing.T) {
	ctx, cancel := context.WithTimeout(test.Context(), eventually.Max)
	defer cancel()
	name := k.names[0]
	// The server has objects of its own of some kinds.
	object := func(name string) t {
		made := k.make(name)
		made.SetLabels(map[string]string{"made-by": "checks"})
		return made
	}
	ours := metav1.ListOptions{LabelSelector: "made-by=checks"}

	empty, err := k.client.List(ctx, ours)
	if err != nil {
		test.Fatal(err)
	}
	options := ours
	options.ResourceVersion, options.AllowWatchBookmarks = listMeta(test, empty).GetResourceVersion(), true
	changes, err := k.client.Watch(ctx, options)
	if err != nil {
		test.Fatal(err)
	}
	defer changes.Stop()
	// What the writes of the first object answered, by resourceVersion.
	answers := map[string]t{}
	var created t

	test.Run("create", func(test *testing.T) {
		dry, err := k.client.Create(ctx, object(name), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil || dry.GetUID() == "" {
			test.Fatal("dry run:", err, dry)
		}
		strict := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
		if created, err = k.client.Create(ctx, object(name), strict); err != nil {
			test.Fatal(err)
		}
		answers[created.GetResourceVersion()] = created
		if created.GetUID() == "" || created.GetCreationTimestamp() == (metav1.Time{}) || len(created.GetManagedFields()) == 0 {
			test.Error("metadata is incomplete:", created)
		}
		want, got := object(name), withoutSystemMetadata(created)
		if k.stored != nil {
			k.stored(want)
		}
		if !equality.Semantic.DeepEqual(want, got) {
			test.Errorf("want %v\ngot %v", want, got)
		}
		_, err = k.client.Create(ctx, object(name), metav1.CreateOptions{})
		if !errors.IsAlreadyExists(err) {
			test.Error("a second time:", err)
		}
		_, err = k.client.Create(ctx, object("no/name"), metav1.CreateOptions{})
		cause, has := errors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
		if !errors.IsInvalid(err) || !has || cause.Field != "metadata.name" {
			test.Error("with an invalid name:", err)
		}
	})

	test.Run("get", func(test *testing.T) {
		got, err := k.client.Get(ctx, name, metav1.GetOptions{})
		if err != nil || got.GetUID() != created.GetUID() || got.GetName() != name {
			test.Error(err, got)
		}
		_, err = k.client.Get(ctx, "absent", metav1.GetOptions{})
		if !errors.IsNotFound(err) {
			test.Error("of what is not there:", err)
		}
	})

	test.Run("list", func(test *testing.T) {
		if _, err := k.client.Create(ctx, object(k.names[1]), metav1.CreateOptions{}); err != nil {
			test.Fatal(err)
		}
		if names := k.list(test, ctx, ours); !slices.Equal(names, k.names[:]) {
			test.Error(names)
		}
		page := ours
		page.Limit = 1
		first, err := k.client.List(ctx, page)
		if err != nil {
			test.Fatal(err)
		}
		page.Continue = listMeta(test, first).GetContinue()
		if names := k.list(test, ctx, page); !slices.Equal(names, k.names[1:]) {
			test.Error("second page:", names)
		}
		one := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
		if names := k.list(test, ctx, one); !slices.Equal(names, k.names[:1]) {
			test.Error("by field:", names)
		}
	})

	test.Run("update", func(test *testing.T) {
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			object, err := k.client.Get(ctx, name, metav1.GetOptions{})
			if err == nil {
				object.SetAnnotations(map[string]string{"updated": "yes"})
				object, err = k.client.Update(ctx, object, metav1.UpdateOptions{})
			}
			if err == nil {
				answers[object.GetResourceVersion()] = object
			}
			return err
		})
		if err != nil {
			test.Fatal(err)
		}
		_, err = k.client.Update(ctx, created, metav1.UpdateOptions{})
		if !errors.IsConflict(err) {
			test.Error("of an older state:", err)
		}
	})

	test.Run("patch", func(test *testing.T) {
		for _, patch := range []struct {
			of   types.PatchType
			text string
		}{
			{types.JSONPatchType, `[{"op": "add", "path": "/metadata/annotations/json", "value": "yes"}]`},
			{types.MergePatchType, `{"metadata": {"annotations": {"merge": "yes"}}}`},
			{types.StrategicMergePatchType, `{"metadata": {"annotations": {"strategic": "yes"}}}`},
		} {
			answer, err := k.client.Patch(ctx, name, patch.of, []byte(patch.text), metav1.PatchOptions{})
			if err != nil {
				test.Fatal(patch.of, err)
			}
			answers[answer.GetResourceVersion()] = answer
		}
		got, err := k.client.Get(ctx, name, metav1.GetOptions{})
		want := map[string]string{"updated": "yes", "json": "yes", "merge": "yes", "strategic": "yes"}
		if err != nil || !equality.Semantic.DeepEqual(got.GetAnnotations(), want) {
			test.Error(err, got.GetAnnotations())
		}
	})

	test.Run("apply", func(test *testing.T) {
		options := metav1.ApplyOptions{FieldManager: "checks"}
		for _, annotations := range []map[string]string{{"applied": "yes", "gone": "soon"}, {"applied": "yes"}} {
			answer, err := k.client.Apply(ctx, k.apply(name, annotations), options)
			if err != nil {
				test.Fatal(err)
			}
			answers[answer.GetResourceVersion()] = answer
		}
		got, err := k.client.Get(ctx, name, metav1.GetOptions{})
		if err != nil || got.GetAnnotations()["applied"] != "yes" || got.GetAnnotations()["gone"] != "" {
			test.Error(err, got.GetAnnotations())
		}
		isApplier := func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Manager == "checks" && entry.Operation == metav1.ManagedFieldsOperationApply
		}
		if !slices.ContainsFunc(got.GetManagedFields(), isApplier) {
			test.Error("no entry of the applier:", got.GetManagedFields())
		}
		_, err = k.client.Apply(ctx, k.apply(name, map[string]string{"merge": "no"}), options)
		if !errors.IsConflict(err) {
			test.Error("of a field of somebody else:", err)
		}
	})

	test.Run("delete", func(test *testing.T) {
		other := types.UID("other")
		wrong := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}
		if err := k.client.Delete(ctx, name, wrong); !errors.IsConflict(err) {
			test.Error("of another uid:", err)
		}
		background := metav1.DeletePropagationBackground
		options := metav1.DeleteOptions{PropagationPolicy: &background}
		if err := k.client.Delete(ctx, name, options); err != nil {
			test.Fatal(err)
		}
		k.waitUntilGone(test, name)
		if err := k.client.Delete(ctx, name, options); !errors.IsNotFound(err) {
			test.Error("a second time:", err)
		}
	})

	test.Run("watch", func(test *testing.T) {
		due := watch.Added
		for event := range changes.ResultChan() {
			object, ok := event.Object.(t)
			if !ok {
				test.Fatal(event)
			}
			if object.GetName() != name {
				continue
			}
			if due == watch.Added && event.Type != due {
				test.Error("the first event is", event.Type)
			}
			due = watch.Modified
			answer, answered := answers[object.GetResourceVersion()]
			if answered && !equality.Semantic.DeepEqual(answer, object) {
				test.Errorf("the answer was %v\nand the event is %v", answer, object)
			}
			delete(answers, object.GetResourceVersion())
			if event.Type == watch.Deleted {
				break
			}
		}
		if len(answers) != 0 {
			test.Error("no events of", slices.Collect(maps.Keys(answers)))
		}
	})

	test.Run("deletecollection", func(test *testing.T) {
		err := k.client.(collection).DeleteCollection(ctx, metav1.DeleteOptions{}, ours)
		if k.noCollection {
			if !errors.IsMethodNotSupported(err) {
				test.Error(err)
			}
			return
		}
		if err != nil {
			test.Fatal(err)
		}
		k.waitUntilGone(test, k.names[1])
	})
}

// list gives the names of the objects that the options select.
func (k kind[t, list, a]) list(test *testing.T, ctx context.Context, options metav1.ListOptions) []string {
	listed, err := k.client.List(ctx, options)
	if err != nil {
		test.Fatal(err)
	}
	var names []string
	err = meta.EachListItem(listed, func(item runtime.Object) error {
		names = append(names, item.(t).GetName())
		return nil
	})
	if err != nil {
		test.Fatal(err)
	}
	return names
}

// waitUntilGone waits for the finalizers that some kinds have.
func (k kind[t, list, a]) waitUntilGone(test *testing.T, name string) {
	eventually.Gone(test, func(ctx context.Context) (t, error) {
		return k.client.Get(ctx, name, metav1.GetOptions{})
	})
}

func listMeta(test *testing.T, list runtime.Object) metav1.ListInterface {
	listed, err := meta.ListAccessor(list)
	if err != nil {
		test.Fatal(err)
	}
	return listed
}

// withoutSystemMetadata gives a copy that lacks what the server writes into the metadata of every object.
func withoutSystemMetadata[t object](created t) t {
	object := created.DeepCopyObject().(t)
	object.SetUID("")
	object.SetResourceVersion("")
	object.SetGeneration(0)
	object.SetCreationTimestamp(metav1.Time{})
	object.SetManagedFields(nil)
	return object
}
