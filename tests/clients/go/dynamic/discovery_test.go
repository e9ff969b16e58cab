package dynamic

import (
	"context"
	"os"
	"slices"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	skiff "github.com/kubeskiff/kubeskiff/helpers/go"
	"kubeskiff/tests/clients/go/eventually"
)

func TestDiscovery(test *testing.T) {
	config, _ := harbour(test)
	client := discovery.NewDiscoveryClientForConfigOrDie(config)
	version, err := client.ServerVersion()
	if err != nil || version.Major != "1" || version.Minor != "37" {
		test.Error(err, version)
	}
	groups, lists, err := client.ServerGroupsAndResources()
	if err != nil || len(groups) == 0 {
		test.Fatal(err)
	}
	var found []string
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, lists) {
		for _, resource := range list.APIResources {
			found = append(found, list.GroupVersion+" "+resource.Name)
		}
	}
	for _, want := range []string{
		"v1 configmaps", "v1 namespaces", "apiextensions.k8s.io/v1 customresourcedefinitions", group.String() + " boats",
	} {
		if !slices.Contains(found, want) {
			test.Error(want, "is not among", found)
		}
	}
	all, ok := restmapper.NewDiscoveryCategoryExpander(client).Expand("all")
	if !ok || !slices.Contains(all, boats.GroupResource()) {
		test.Error("the category holds", all)
	}
	openapi, err := client.OpenAPIV3().Paths()
	if err != nil {
		test.Fatal(err)
	}
	schema, err := openapi["apis/"+group.String()].Schema("application/com.github.proto-openapi.spec.v3@v1.0+protobuf")
	if err != nil || len(schema) == 0 {
		test.Error("OpenAPI v3 in protobuf:", err)
	}
	if _, err := client.OpenAPISchema(); err != nil {
		test.Error("OpenAPI v2 in protobuf:", err)
	}
}

// A mapper that has asked once learns of a new kind when it is reset, or looks for one that it does not know.
func TestRESTMapper(test *testing.T) {
	config := skiff.Start(test)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(config)))
	for kind, resource := range map[schema.GroupKind]string{
		{Kind: "Namespace"}: "namespaces",
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: "customresourcedefinitions",
		{Group: "events.k8s.io", Kind: "Event"}:                           "events",
	} {
		mapping, err := mapper.RESTMapping(kind)
		if err != nil || mapping.Resource.Resource != resource {
			test.Error(kind, mapping, err)
		}
	}
	kind := group.WithKind("Boat").GroupKind()
	if _, err := mapper.RESTMapping(kind); !meta.IsNoMatchError(err) {
		test.Error("before there are boats:", err)
	}
	register(test, config)
	mapper.Reset()
	mapping, err := mapper.RESTMapping(kind)
	if err != nil || mapping.Resource != boats || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		test.Error(err, mapping)
	}
	expander := restmapper.NewShortcutExpander(mapper, discovery.NewDiscoveryClientForConfigOrDie(config), func(warning string) {
		test.Error(warning)
	})
	resource, err := expander.ResourceFor(schema.GroupVersionResource{Resource: "bt"})
	if err != nil || resource != boats {
		test.Error("by short name:", err, resource)
	}
	// What is gone is no longer found.
	extensions := apiextensions.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
	if err := extensions.Delete(test.Context(), boats.GroupResource().String(), metav1.DeleteOptions{}); err != nil {
		test.Fatal(err)
	}
	eventually.Gone(test, func(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
		return extensions.Get(ctx, boats.GroupResource().String(), metav1.GetOptions{})
	})
	mapper.Reset()
	if _, err := mapper.RESTMapping(kind); !meta.IsNoMatchError(err) {
		test.Error("after there were boats:", err)
	}
}

// register creates the definition of boats through the typed client, and waits as its users do.
func register(test *testing.T, config *rest.Config) {
	text, err := os.ReadFile("../boats/boats.yaml")
	if err != nil {
		test.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, definition); err != nil {
		test.Fatal(err)
	}
	client := apiextensions.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
	if _, err := client.Create(test.Context(), definition, metav1.CreateOptions{}); err != nil {
		test.Fatal(err)
	}
	eventually.Holds(test, "the definition is established", func(ctx context.Context) (bool, error) {
		definition, err := client.Get(ctx, definition.Name, metav1.GetOptions{})
		return err == nil && apihelpers.IsCRDConditionTrue(definition, apiextensionsv1.Established), err
	})
}
