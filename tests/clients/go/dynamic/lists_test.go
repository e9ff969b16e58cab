package dynamic

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
)

func TestPager(test *testing.T) {
	_, client := harbour(test)
	want := numbered(25)
	launch(test, client, want...)
	var pages int
	var listed []string
	lister := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		list, err := client.List(ctx, options)
		// The list is of the state at its first page.
		launch(test, client, fmt.Sprintf("late-%d", pages))
		pages++
		return list, err
	})
	lister.PageSize = 10
	err := lister.EachListItem(test.Context(), metav1.ListOptions{}, func(item runtime.Object) error {
		listed = append(listed, item.(*unstructured.Unstructured).GetName())
		return nil
	})
	if err != nil {
		test.Fatal(err)
	}
	if pages != 3 || !slices.Equal(listed, want) {
		test.Error(pages, "pages:", listed)
	}
}

func TestMetadataClient(test *testing.T) {
	config, boatsClient := harbour(test)
	launch(test, boatsClient, "daisy", "heron")
	client := metadata.NewForConfigOrDie(config).Resource(boats).Namespace(namespace)
	list, err := client.List(test.Context(), metav1.ListOptions{LabelSelector: "name=heron"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "heron" || list.ResourceVersion == "" {
		test.Fatal(err, list)
	}
	changes, err := client.Watch(test.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		test.Fatal(err)
	}
	defer changes.Stop()
	patched, err := client.Patch(test.Context(), "heron", types.MergePatchType, []byte(`{"metadata": {"annotations": {"a": "b"}}}`), metav1.PatchOptions{})
	if err != nil || patched.Annotations["a"] != "b" || patched.UID != list.Items[0].UID {
		test.Error(err, patched)
	}
	event := <-changes.ResultChan()
	if object, ok := event.Object.(*metav1.PartialObjectMetadata); !ok || !equality.Semantic.DeepEqual(object, patched) {
		test.Error(event)
	}
	if err := client.Delete(test.Context(), "heron", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(patched.UID))}); err != nil {
		test.Error(err)
	}
	if _, err := client.Get(test.Context(), "heron", metav1.GetOptions{}); !errors.IsNotFound(err) {
		test.Error(err)
	}
	if err := client.DeleteCollection(test.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		test.Error(err)
	}
	if list, err := client.List(test.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		test.Error(err, list)
	}
}

// A Table as kubectl asks for it.
func TestTable(test *testing.T) {
	config, client := harbour(test)
	launch(test, client, "daisy")
	config.APIPath, config.GroupVersion = "/apis", &group
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	rest, err := rest.RESTClientFor(config)
	if err != nil {
		test.Fatal(err)
	}
	table := &metav1.Table{}
	err = rest.Get().Resource("boats").Namespace(namespace).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json").
		Do(test.Context()).Into(table)
	if err != nil {
		test.Fatal(err)
	}
	var columns []string
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, column.Name)
	}
	if !slices.Equal(columns, []string{"Name", "Port", "Crew"}) || len(table.Rows) != 1 {
		test.Fatal(columns, table.Rows)
	}
	if cells := table.Rows[0].Cells; !slices.Equal(cells, []any{"daisy", "Hull", int64(1)}) {
		test.Errorf("%#v", cells)
	}
}
