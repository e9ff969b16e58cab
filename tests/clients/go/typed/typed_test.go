// Package typed checks each built-in kind through its typed client, which encodes in protobuf unless told otherwise.
package typed

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	applyapiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycoordinationv1 "k8s.io/client-go/applyconfigurations/coordination/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applyeventsv1 "k8s.io/client-go/applyconfigurations/events/v1"
	"k8s.io/client-go/kubernetes"

	skiff "github.com/kubeskiff/kubeskiff/helpers/go"
	"kubeskiff/tests/clients/go/eventually"
)

const namespace = "default"

var names = [2]string{"first", "second"}

func TestKinds(test *testing.T) {
	config := skiff.Start(test)
	bodies := overhear(config)
	core := kubernetes.NewForConfigOrDie(config)
	extensions := apiextensions.NewForConfigOrDie(config)

	test.Run("ConfigMap", kind[*corev1.ConfigMap, *corev1.ConfigMapList, *applycorev1.ConfigMapApplyConfiguration]{
		client: core.CoreV1().ConfigMaps(namespace),
		names:  names,
		make: func(name string) *corev1.ConfigMap {
			return &corev1.ConfigMap{
				ObjectMeta: in(namespace, name),
				Data:       map[string]string{"a": "b", "empty": ""},
				BinaryData: map[string][]byte{"binary": {0, 255}},
				Immutable:  new(bool),
			}
		},
		apply: func(name string, annotations map[string]string) *applycorev1.ConfigMapApplyConfiguration {
			return applycorev1.ConfigMap(name, namespace).WithAnnotations(annotations)
		},
	}.check)

	test.Run("Secret", kind[*corev1.Secret, *corev1.SecretList, *applycorev1.SecretApplyConfiguration]{
		client: core.CoreV1().Secrets(namespace),
		names:  names,
		make: func(name string) *corev1.Secret {
			return &corev1.Secret{
				ObjectMeta: in(namespace, name),
				Data:       map[string][]byte{"a": {0, 255}, "b": []byte("old")},
				StringData: map[string]string{"b": "new"},
			}
		},
		stored: func(secret *corev1.Secret) {
			secret.Type = corev1.SecretTypeOpaque
			secret.Data["b"], secret.StringData = []byte("new"), nil
		},
		apply: func(name string, annotations map[string]string) *applycorev1.SecretApplyConfiguration {
			return applycorev1.Secret(name, namespace).WithAnnotations(annotations)
		},
	}.check)

	test.Run("ServiceAccount", kind[*corev1.ServiceAccount, *corev1.ServiceAccountList, *applycorev1.ServiceAccountApplyConfiguration]{
		client: core.CoreV1().ServiceAccounts(namespace),
		names:  names,
		make: func(name string) *corev1.ServiceAccount {
			mounts := false
			return &corev1.ServiceAccount{
				ObjectMeta:                   in(namespace, name),
				Secrets:                      []corev1.ObjectReference{{Name: "token"}},
				ImagePullSecrets:             []corev1.LocalObjectReference{{Name: "registry"}},
				AutomountServiceAccountToken: &mounts,
			}
		},
		apply: func(name string, annotations map[string]string) *applycorev1.ServiceAccountApplyConfiguration {
			return applycorev1.ServiceAccount(name, namespace).WithAnnotations(annotations)
		},
	}.check)

	test.Run("Lease", kind[*coordinationv1.Lease, *coordinationv1.LeaseList, *applycoordinationv1.LeaseApplyConfiguration]{
		client: core.CoordinationV1().Leases(namespace),
		names:  names,
		make: func(name string) *coordinationv1.Lease {
			holder, seconds, renewed := "me", int32(15), metav1.NewMicroTime(time.UnixMicro(1234567890123456))
			return &coordinationv1.Lease{
				ObjectMeta: in(namespace, name),
				Spec: coordinationv1.LeaseSpec{
					HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed, LeaseTransitions: new(int32),
				},
			}
		},
		apply: func(name string, annotations map[string]string) *applycoordinationv1.LeaseApplyConfiguration {
			return applycoordinationv1.Lease(name, namespace).WithAnnotations(annotations)
		},
	}.check)

	test.Run("Event", kind[*corev1.Event, *corev1.EventList, *applycorev1.EventApplyConfiguration]{
		client: core.CoreV1().Events(namespace),
		names:  names,
		make: func(name string) *corev1.Event {
			at := metav1.NewTime(time.Unix(1234567890, 0))
			return &corev1.Event{
				ObjectMeta:     in(namespace, name),
				InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "a"},
				Reason:         "Tested", Message: "all is well", Type: corev1.EventTypeNormal,
				Source:         corev1.EventSource{Component: "checks"},
				FirstTimestamp: at, LastTimestamp: at, Count: 3,
			}
		},
		apply: func(name string, annotations map[string]string) *applycorev1.EventApplyConfiguration {
			return applycorev1.Event(name, namespace).WithAnnotations(annotations)
		},
	}.check)

	test.Run("Event.events.k8s.io", kind[*eventsv1.Event, *eventsv1.EventList, *applyeventsv1.EventApplyConfiguration]{
		client: core.EventsV1().Events(namespace),
		names:  names,
		make: func(name string) *eventsv1.Event {
			return &eventsv1.Event{
				ObjectMeta:          in(namespace, name),
				EventTime:           metav1.NewMicroTime(time.UnixMicro(1234567890123456)),
				ReportingController: "example.com/checks", ReportingInstance: "checks-1",
				Action: "Testing", Reason: "Tested", Note: "all is well", Type: corev1.EventTypeWarning,
				Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "a"},
				Series:    &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(time.UnixMicro(1234567890223456))},
			}
		},
		apply: func(name string, annotations map[string]string) *applyeventsv1.EventApplyConfiguration {
			return applyeventsv1.Event(name, namespace).WithAnnotations(annotations)
		},
	}.check)

	test.Run("Namespace", kind[*corev1.Namespace, *corev1.NamespaceList, *applycorev1.NamespaceApplyConfiguration]{
		client:       core.CoreV1().Namespaces(),
		names:        names,
		noCollection: true,
		make: func(name string) *corev1.Namespace {
			return &corev1.Namespace{ObjectMeta: in("", name)}
		},
		stored: func(namespace *corev1.Namespace) {
			namespace.Labels[corev1.LabelMetadataName] = namespace.Name
			namespace.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
			namespace.Status.Phase = corev1.NamespaceActive
		},
		apply: func(name string, annotations map[string]string) *applycorev1.NamespaceApplyConfiguration {
			return applycorev1.Namespace(name).WithAnnotations(annotations)
		},
	}.check)

	test.Run("CustomResourceDefinition", kind[*apiextensionsv1.CustomResourceDefinition, *apiextensionsv1.CustomResourceDefinitionList, *applyapiextensionsv1.CustomResourceDefinitionApplyConfiguration]{
		client: extensions.ApiextensionsV1().CustomResourceDefinitions(),
		names:  [2]string{"boats.example.com", "crews.example.com"},
		make:   definition,
		stored: func(definition *apiextensionsv1.CustomResourceDefinition) {
			apiextensionsv1.SetDefaults_CustomResourceDefinition(definition)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&definition.Spec)
			definition.Status.StoredVersions = []string{"v1"}
		},
		apply: func(name string, annotations map[string]string) *applyapiextensionsv1.CustomResourceDefinitionApplyConfiguration {
			return applyapiextensionsv1.CustomResourceDefinition(name).WithAnnotations(annotations)
		},
	}.check)

	test.Run("bodies are protobuf", func(test *testing.T) {
		for _, body := range bodies.other() {
			test.Error(body)
		}
	})
}

// A namespace is deleted once its content is gone and nobody's finalizer is left.
func TestNamespaceFinalizers(test *testing.T) {
	ctx, client := test.Context(), kubernetes.NewForConfigOrDie(skiff.Start(test)).CoreV1().Namespaces()
	const finalizer = "example.com/hold"
	made := &corev1.Namespace{ObjectMeta: in("", "held")}
	made.Spec.Finalizers = []corev1.FinalizerName{finalizer}
	if _, err := client.Create(ctx, made, metav1.CreateOptions{}); err != nil {
		test.Fatal(err)
	}
	if err := client.Delete(ctx, made.Name, metav1.DeleteOptions{}); err != nil {
		test.Fatal(err)
	}
	var held *corev1.Namespace
	eventually.Holds(test, "its content is gone", func(ctx context.Context) (done bool, err error) {
		held, err = client.Get(ctx, made.Name, metav1.GetOptions{})
		return err == nil && slices.Equal(held.Spec.Finalizers, made.Spec.Finalizers), err
	})
	if held.Status.Phase != corev1.NamespaceTerminating {
		test.Error(held.Status)
	}
	held.Status.Conditions = append(held.Status.Conditions, corev1.NamespaceCondition{
		Type: "Held", Status: corev1.ConditionTrue, Reason: "Tested", Message: "on purpose",
	})
	held, err := client.UpdateStatus(ctx, held, metav1.UpdateOptions{})
	if err != nil {
		test.Fatal(err)
	}
	held.Spec.Finalizers = nil
	if _, err := client.Finalize(ctx, held, metav1.UpdateOptions{}); err != nil {
		test.Fatal(err)
	}
	eventually.Gone(test, func(ctx context.Context) (*corev1.Namespace, error) {
		return client.Get(ctx, made.Name, metav1.GetOptions{})
	})
}

func in(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// definition is one whose schema has what is awkward to encode: any JSON, and fields that are a boolean or an object.
func definition(name string) *apiextensionsv1.CustomResourceDefinition {
	plural, group, _ := strings.Cut(name, ".")
	singular := strings.TrimSuffix(plural, "s")
	length := 2.5
	minimum := int64(1)
	spec := apiextensionsv1.JSONSchemaProps{
		Type:     "object",
		Required: []string{"rig"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"length": {Type: "number", Minimum: &length, ExclusiveMinimum: true},
			"rig": {
				Type: "string", MinLength: &minimum,
				Default: &apiextensionsv1.JSON{Raw: []byte(`"sloop"`)},
				Enum:    []apiextensionsv1.JSON{{Raw: []byte(`"sloop"`)}, {Raw: []byte(`"ketch"`)}},
			},
			"tags": {
				Type: "array", MaxItems: &minimum,
				Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
			},
			"labels": {
				Type: "object",
				AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
					Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"},
				},
			},
		},
		XValidations: apiextensionsv1.ValidationRules{{Rule: "self.rig != 'ketch' || self.length > 9.0", Message: "too short"}},
	}
	preserves := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: in("", name),
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: plural, Singular: singular, Kind: strings.ToUpper(singular[:1]) + singular[1:], ShortNames: []string{singular[:3]},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec":   spec,
						"status": {Type: "object", XPreserveUnknownFields: &preserves},
					},
				}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{
					{Name: "Rig", Type: "string", JSONPath: ".spec.rig"},
				},
			}},
		},
	}
}
