package kinds

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"kubeskiff/tests/clients/go/eventually"
)

var contentTypes = []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf}

// drive takes an object of one kind through its verbs.
type drive struct {
	*testing.T
	*resource
	client  *rest.RESTClient
	example *unstructured.Unstructured
	// seen is the type that the last answer had.
	seen        string
	contentType string
}

func newDrive(test *testing.T, config *rest.Config, contentType string, of *resource, example *unstructured.Unstructured) *drive {
	d := &drive{T: test, resource: of, example: example, contentType: contentType}
	config = rest.CopyConfig(config)
	version := of.GroupVersion()
	config.GroupVersion, config.NegotiatedSerializer = &version, codecs.WithoutConversion()
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	config.APIPath = "/apis"
	if of.Group == "" {
		config.APIPath = "/api"
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil {
				d.seen = response.Header.Get("Content-Type")
			}
			return response, err
		})
	})
	client, err := rest.RESTClientFor(config)
	if err != nil {
		test.Fatal(err)
	}
	d.client = client
	return d
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) {
	return f(request)
}

func (d *drive) run() {
	created := d.create()
	name := created.GetName()
	d.Cleanup(func() { d.cleanUp(name) })
	d.sameInBothForms(name)
	d.list(name)
	d.patch(name)
	d.update(name)
	d.updateParts(name)
	d.delete(name)
}

// create checks that the answer has all of the example.
func (d *drive) create() metav1.Object {
	answer := d.typed()
	d.ok("create", d.on(d.client.Post()).Body(d.typedExample()).Do(d.Context()), answer)
	if answer.GetUID() == "" || answer.GetResourceVersion() == "" || answer.GetCreationTimestamp() == (metav1.Time{}) {
		d.Error("metadata is incomplete:", answer)
	}
	d.has("", fields(d, answer), d.stored())
	return answer
}

// stored is what of the example is stored.
func (d *drive) stored() map[string]any {
	stored := d.example.DeepCopy().Object
	if d.Kind == "Secret" {
		delete(stored, "stringData")
	}
	return stored
}

// ask creates what is answered and not stored. The rules of a user come without the question.
func (d *drive) ask() {
	answer := d.typed()
	d.ok("create", d.on(d.client.Post()).Body(d.typedExample()).Do(d.Context()), answer)
	if d.Kind != "SelfSubjectRulesReview" {
		d.has("", fields(d, answer), d.example.Object)
	}
	if status, _ := fields(d, answer)["status"].(map[string]any); len(status) == 0 {
		d.Error("it has no status:", answer)
	}
}

// sameInBothForms reads the object in JSON, whose fields must all be known to the type, and in the form of the drive.
func (d *drive) sameInBothForms(name string) {
	raw, err := d.one(d.client.Get(), name).SetHeader("Accept", runtime.ContentTypeJSON).DoRaw(d.Context())
	if err != nil {
		d.Fatal("get in JSON:", err)
	}
	read, _, err := codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		d.Fatalf("get in JSON: %v: %s", err, raw)
	}
	want, got := read.(metav1.Object), d.get(name)
	clearType(want)
	if !equality.Semantic.DeepEqual(want, got) {
		d.Errorf("in JSON it is %v\nbut %v", want, got)
	}
	var sent map[string]any
	if err := json.Unmarshal(raw, &sent); err != nil {
		d.Fatal(err)
	}
	delete(sent, "kind")
	delete(sent, "apiVersion")
	d.has("", fields(d, got), sent)
}

func (d *drive) get(name string) metav1.Object {
	answer := d.typed()
	d.ok("get", d.one(d.client.Get(), name).Do(d.Context()), answer)
	return answer
}

// list checks that the object stands there as get gives it.
func (d *drive) list(name string) {
	list, err := types.New(d.GroupVersion().WithKind(d.Kind + "List"))
	if err != nil {
		d.Fatal(err)
	}
	request := d.on(d.client.Get()).Param("fieldSelector", "metadata.name="+name)
	if err := request.Do(d.Context()).Into(list); err != nil {
		d.Fatal("list:", err)
	}
	items, err := meta.ExtractList(list)
	if err != nil || len(items) != 1 {
		d.Fatal("list:", err, len(items))
	}
	want, got := d.get(name), items[0].(metav1.Object)
	clearType(got)
	if !equality.Semantic.DeepEqual(want, got) {
		d.Errorf("get: %v\nlist: %v", want, got)
	}
}

func (d *drive) patch(name string) {
	for patchType, key := range map[apitypes.PatchType]string{
		apitypes.StrategicMergePatchType: "strategic", apitypes.MergePatchType: "merge",
	} {
		answer := d.typed()
		body := fmt.Appendf(nil, `{"metadata": {"labels": {%q: "yes"}}}`, key)
		d.ok("patch", d.one(d.client.Patch(patchType), name).Body(body).Do(d.Context()), answer)
		if answer.GetLabels()[key] != "yes" {
			d.Error("after a patch:", answer)
		}
	}
}

func (d *drive) update(name string) {
	object, answer := d.get(name), d.typed()
	annotations := map[string]string{"updated": "yes"}
	maps.Copy(annotations, object.GetAnnotations())
	object.SetAnnotations(annotations)
	d.ok("update", d.one(d.client.Put(), name).Body(object).Do(d.Context()), answer)
	if answer.GetAnnotations()["updated"] != "yes" || answer.GetLabels()["merge"] != "yes" {
		d.Error("after an update:", answer)
	}
	d.isSame("update", object, answer)
}

// isSame compares what was sent with the answer. Writes give a new version, and may note who manages what; annotations are
// for some kinds a new generation.
func (d *drive) isSame(what string, sent, answer metav1.Object) {
	sent.SetResourceVersion(answer.GetResourceVersion())
	sent.SetManagedFields(answer.GetManagedFields())
	sent.SetGeneration(answer.GetGeneration())
	if !equality.Semantic.DeepEqual(sent, answer) {
		d.Errorf("%s sent %v\nand got %v", what, sent, answer)
	}
}

// updateParts writes the object as it is to those of its subresources that take it.
func (d *drive) updateParts(name string) {
	for _, part := range []string{"status", "approval", "finalize"} {
		if !slices.Contains(d.parts[part], "update") {
			continue
		}
		object, answer := d.get(name), d.typed()
		d.ok(part, d.one(d.client.Put(), name).SubResource(part).Body(object).Do(d.Context()), answer)
		d.isSame(part, object, answer)
	}
}

// delete takes the finalizers away that nobody else would.
func (d *drive) delete(name string) {
	if result := d.one(d.client.Delete(), name).Do(d.Context()); result.Error() != nil {
		d.Fatal("delete:", result.Error())
	}
	body := []byte(`{"metadata": {"finalizers": null}}`)
	err := d.one(d.client.Patch(apitypes.MergePatchType), name).Body(body).Do(d.Context()).Error()
	if err != nil && !errors.IsNotFound(err) {
		d.Fatal("finalizers:", err)
	}
	eventually.Gone(d, func(ctx context.Context) (metav1.Object, error) {
		answer := d.typed()
		return answer, d.one(d.client.Get(), name).Do(ctx).Into(answer.(runtime.Object))
	})
}

// cleanUp makes place for the next form of a kind whose test failed.
func (d *drive) cleanUp(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	d.one(d.client.Delete(), name).Do(ctx)
}

func (d *drive) on(request *rest.Request) *rest.Request {
	return request.NamespaceIfScoped(namespace, d.namespaced).Resource(d.name)
}

func (d *drive) one(request *rest.Request, name string) *rest.Request {
	return d.on(request).Name(name)
}

// ok decodes the answer, which must be in the form that was asked for.
func (d *drive) ok(what string, result rest.Result, into metav1.Object) {
	d.Helper()
	if err := result.Into(into.(runtime.Object)); err != nil {
		d.Fatalf("%s: %v", what, err)
	}
	if d.seen != d.contentType {
		d.Errorf("%s is answered in %s", what, d.seen)
	}
	clearType(into)
}

// typed gives an empty object of the kind.
func (d *drive) typed() metav1.Object {
	object, err := types.New(d.GroupVersionKind)
	if err != nil {
		d.Fatal(err)
	}
	return object.(metav1.Object)
}

// typedExample decodes the example, whose fields must all be known.
func (d *drive) typedExample() runtime.Object {
	d.example.SetGroupVersionKind(d.GroupVersionKind)
	object := d.typed()
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(d.example.Object, object, true)
	if err != nil {
		d.Fatal("the example:", err)
	}
	return object.(runtime.Object)
}
