// Package kinds drives every kind that the server lists, in JSON and in protobuf, through client-go's typed objects.
package kinds

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	skiff "github.com/kubeskiff/kubeskiff/helpers/go"
)

const namespace = "default"

var (
	types  = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(types, serializer.EnableStrict)
)

func init() {
	utilruntime.Must(scheme.AddToScheme(types))
	utilruntime.Must(apiextensionsv1.AddToScheme(types))
	utilruntime.Must(apiregistrationv1.AddToScheme(types))
}

// resource is what discovery says of a kind.
type resource struct {
	schema.GroupVersionKind
	name       string
	namespaced bool
	verbs      []string
	// parts are its subresources, with their verbs.
	parts map[string][]string
}

func TestEveryKind(test *testing.T) {
	config := skiff.Start(test, skiff.Arguments("--runtime-config=api/all=true", "--feature-gates=GenericWorkload=true,CompositePodGroup=true",
		"--disable-admission-plugins=TaintNodesByCondition",
		// It would write the status of policies between a read and an update.
		"--controllers=*,-validatingadmissionpolicy-status-controller"))
	// Some kinds are deprecated, and say so.
	config.WarningHandler = rest.NoWarnings{}
	examples := readExamples(test)
	for _, contentType := range contentTypes {
		for _, resource := range discover(test, config) {
			if !slices.Contains(resource.verbs, "create") || !slices.Contains(resource.verbs, "get") {
				continue
			}
			name := contentType + " " + resource.name + "." + resource.Version + "." + resource.Group
			test.Run(name, func(test *testing.T) {
				example := examples[resource.GroupVersionKind]
				if example == nil {
					test.Fatal("it has no example")
				}
				newDrive(test, config, contentType, resource, example).run()
			})
		}
	}
}

// What is created only to be answered. Bindings need a pod: TestPods has them.
func TestEveryQuestion(test *testing.T) {
	config := skiff.Start(test, skiff.Arguments("--runtime-config=api/all=true", "--feature-gates=GenericWorkload=true,CompositePodGroup=true",
		"--disable-admission-plugins=TaintNodesByCondition",
		// It would write the status of policies between a read and an update.
		"--controllers=*,-validatingadmissionpolicy-status-controller"))
	// Some kinds are deprecated, and say so.
	config.WarningHandler = rest.NoWarnings{}
	examples := readExamples(test)
	for _, contentType := range contentTypes {
		for _, resource := range discover(test, config) {
			if !slices.Equal(resource.verbs, []string{"create"}) || resource.Kind == "Binding" {
				continue
			}
			test.Run(contentType+" "+resource.name, func(test *testing.T) {
				example := examples[resource.GroupVersionKind]
				if example == nil {
					test.Fatal("it has no example")
				}
				newDrive(test, config, contentType, resource, example).ask()
			})
		}
	}
}

// discover gives every resource that is served, whatever its group.
func discover(test *testing.T, config *rest.Config) []*resource {
	_, lists, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerGroupsAndResources()
	if err != nil {
		test.Fatal(err)
	}
	var resources []*resource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			test.Fatal(err)
		}
		byName := map[string]*resource{}
		for _, listed := range list.APIResources {
			if !strings.Contains(listed.Name, "/") {
				byName[listed.Name] = &resource{
					version.WithKind(listed.Kind), listed.Name, listed.Namespaced, listed.Verbs, map[string][]string{},
				}
				resources = append(resources, byName[listed.Name])
			}
		}
		for _, listed := range list.APIResources {
			if name, part, isPart := strings.Cut(listed.Name, "/"); isPart {
				byName[name].parts[part] = listed.Verbs
			}
		}
	}
	if len(resources) < 60 {
		test.Fatal("discovery lists only", len(resources), "resources")
	}
	return resources
}

// readExamples reads the file that EXAMPLES names: a JSON object a line.
func readExamples(test *testing.T) map[schema.GroupVersionKind]*unstructured.Unstructured {
	file, err := os.Open(os.Getenv("EXAMPLES"))
	if err != nil {
		test.Fatal(err)
	}
	defer file.Close()
	examples := map[schema.GroupVersionKind]*unstructured.Unstructured{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		example := &unstructured.Unstructured{}
		if err := json.Unmarshal(lines.Bytes(), &example.Object); err != nil {
			test.Fatal(err)
		}
		examples[example.GroupVersionKind()] = example
	}
	if err := lines.Err(); err != nil {
		test.Fatal(err)
	}
	return examples
}
