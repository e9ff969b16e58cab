// Package dynamic checks what clients do that know no types: discovery, informers, pages, metadata, tables, scales.
package dynamic

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	skiff "github.com/kubeskiff/kubeskiff/helpers/go"
)

const namespace = "default"

var (
	group      = schema.GroupVersion{Group: "harbour.example.com", Version: "v1"}
	boats      = group.WithResource("boats")
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// harbour starts a server that has boats; it gives the client of those in the default namespace, too.
func harbour(test *testing.T) (*rest.Config, dynamic.ResourceInterface) {
	config := skiff.Start(test, skiff.CRDs("../boats"))
	return config, dynamic.NewForConfigOrDie(config).Resource(boats).Namespace(namespace)
}

func boat(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group.String(),
		"kind":       "Boat",
		"metadata":   map[string]any{"name": name, "labels": map[string]any{"name": name}},
		"spec":       map[string]any{},
	}}
}

// launch creates boats with these names.
func launch(test *testing.T, client dynamic.ResourceInterface, names ...string) {
	for _, name := range names {
		if _, err := client.Create(test.Context(), boat(name), metav1.CreateOptions{}); err != nil {
			test.Fatal(err)
		}
	}
}

// numbered gives as many names, in order.
func numbered(count int) []string {
	names := make([]string, count)
	for at := range names {
		names[at] = fmt.Sprintf("boat-%03d", at)
	}
	return names
}
