package kinds

import (
	"context"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	skiff "github.com/kubeskiff/kubeskiff/helpers/go"
)

// inBothForms runs a test with a typed clientset that sends and reads JSON, and one of protobuf.
func inBothForms(test *testing.T, check func(*testing.T, *kubernetes.Clientset)) {
	for _, contentType := range contentTypes {
		test.Run(contentType, func(test *testing.T) {
			config := skiff.Start(test)
			config = rest.CopyConfig(config)
			config.ContentType, config.AcceptContentTypes = contentType, contentType
			check(test, kubernetes.NewForConfigOrDie(config))
		})
	}
}

// made decodes the example of a kind.
func made(test *testing.T, into runtime.Object) {
	kinds, _, err := types.ObjectKinds(into)
	if err != nil {
		test.Fatal(err)
	}
	example := readExamples(test)[kinds[0]]
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(example.Object, into); err != nil {
		test.Fatal(err)
	}
}

func must[object any](test *testing.T, what string) func(object, error) object {
	return func(answer object, err error) object {
		test.Helper()
		if err != nil {
			test.Fatalf("%s: %v", what, err)
		}
		return answer
	}
}

// scaled is the typed client of a kind that has replicas.
type scaled interface {
	GetScale(ctx context.Context, name string, options metav1.GetOptions) (*autoscalingv1.Scale, error)
	UpdateScale(ctx context.Context, name string, scale *autoscalingv1.Scale, options metav1.UpdateOptions) (*autoscalingv1.Scale, error)
}

func TestScales(test *testing.T) {
	inBothForms(test, func(test *testing.T, client *kubernetes.Clientset) {
		apps, core := client.AppsV1(), client.CoreV1()
		for kind, scaled := range map[string]scaled{
			"Deployment":            apps.Deployments(namespace),
			"ReplicaSet":            apps.ReplicaSets(namespace),
			"StatefulSet":           apps.StatefulSets(namespace),
			"ReplicationController": core.ReplicationControllers(namespace),
		} {
			example := exampleOf(test, kind)
			path := client.RESTClient().Post().AbsPath("apis/apps/v1/namespaces/default").Resource(strings.ToLower(kind) + "s")
			if kind == "ReplicationController" {
				path = client.RESTClient().Post().AbsPath("api/v1/namespaces/default").Resource(strings.ToLower(kind) + "s")
			}
			body, err := example.MarshalJSON()
			if err == nil {
				err = path.SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(test.Context()).Error()
			}
			if err != nil {
				test.Fatal(kind, err)
			}
			scale := must[*autoscalingv1.Scale](test, kind)(scaled.GetScale(test.Context(), example.GetName(), metav1.GetOptions{}))
			if scale.Status.Selector == "" || scale.UID == "" {
				test.Error(kind, "has the scale", scale)
			}
			scale.Spec.Replicas = 7
			scale = must[*autoscalingv1.Scale](test, kind)(scaled.UpdateScale(test.Context(), scale.Name, scale, metav1.UpdateOptions{}))
			if scale.Spec.Replicas != 7 {
				test.Error(kind, "after an update:", scale)
			}
		}
	})
}

func TestPods(test *testing.T) {
	inBothForms(test, func(test *testing.T, client *kubernetes.Clientset) {
		ctx, pods, node := test.Context(), client.CoreV1().Pods(namespace), &corev1.Node{}
		made(test, node)
		must[*corev1.Node](test, "node")(client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}))
		pod := &corev1.Pod{}
		made(test, pod)
		pod.Spec.NodeName = ""
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: quantity.MustParse("1")}
		pod = must[*corev1.Pod](test, "create")(pods.Create(ctx, pod, metav1.CreateOptions{}))

		debug := pod.DeepCopy()
		debug.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox"},
		}}
		pod = must[*corev1.Pod](test, "ephemeralcontainers")(pods.UpdateEphemeralContainers(ctx, pod.Name, debug, metav1.UpdateOptions{}))
		if len(pod.Spec.EphemeralContainers) != 1 || pod.Spec.EphemeralContainers[0].TerminationMessagePath == "" {
			test.Error("ephemeral containers:", pod.Spec.EphemeralContainers)
		}
		resized := pod.DeepCopy()
		resized.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: quantity.MustParse("2")}
		pod = must[*corev1.Pod](test, "resize")(pods.UpdateResize(ctx, pod.Name, resized, metav1.UpdateOptions{}))
		if asked := pod.Spec.Containers[0].Resources.Requests.Cpu().String(); asked != "2" {
			test.Error("after a resize:", asked)
		}
		bare := pod.DeepCopy()
		bare.Spec.Containers[0].Resources.Requests = nil
		if _, err := pods.UpdateResize(ctx, pod.Name, bare, metav1.UpdateOptions{}); !errors.IsInvalid(err) {
			test.Error("a resize that takes the requests away:", err)
		}

		binding := &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node.Name},
		}
		if err := pods.Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
			test.Fatal("binding:", err)
		}
		pod = must[*corev1.Pod](test, "get")(pods.Get(ctx, pod.Name, metav1.GetOptions{}))
		if pod.Spec.NodeName != node.Name {
			test.Error("bound to", pod.Spec.NodeName)
		}
		if err := pods.Bind(ctx, binding, metav1.CreateOptions{}); !errors.IsConflict(err) {
			test.Error("bound a second time:", err)
		}
		if _, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{Container: pod.Spec.Containers[0].Name}).DoRaw(ctx); err == nil {
			test.Error("it has a log, without a kubelet")
		}
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}}
		if err := pods.EvictV1(ctx, eviction); err != nil {
			test.Fatal("eviction:", err)
		}
		pod, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if !errors.IsNotFound(err) && (err != nil || pod.DeletionTimestamp == nil) {
			test.Error("evicted:", err, pod)
		}
	})
}

// A budget without pods to spare keeps its pods.
func TestEvictionWithBudget(test *testing.T) {
	inBothForms(test, func(test *testing.T, client *kubernetes.Clientset) {
		ctx, pods := test.Context(), client.CoreV1().Pods(namespace)
		pod := &corev1.Pod{}
		made(test, pod)
		pod.Labels = map[string]string{"app": "kept"}
		pod = must[*corev1.Pod](test, "create")(pods.Create(ctx, pod, metav1.CreateOptions{}))
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		must[*corev1.Pod](test, "status")(pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}))
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: pod.Labels}
		budgets := client.PolicyV1().PodDisruptionBudgets(namespace)
		must[*policyv1.PodDisruptionBudget](test, "budget")(budgets.Create(ctx, budget, metav1.CreateOptions{}))
		// One that no controller has seen yet would be asked again and again, every ten seconds.
		budget, err := budgets.Get(ctx, "kept", metav1.GetOptions{})
		if err != nil {
			test.Fatal(err)
		}
		budget.Status.ObservedGeneration = budget.Generation
		must[*policyv1.PodDisruptionBudget](test, "budget")(budgets.UpdateStatus(ctx, budget, metav1.UpdateOptions{}))
		err = pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}})
		if !errors.IsTooManyRequests(err) {
			test.Error("evicted:", err)
		}
	})
}

func TestTokensAndApproval(test *testing.T) {
	inBothForms(test, func(test *testing.T, client *kubernetes.Clientset) {
		ctx := test.Context()
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "builder"}}
		accounts := client.CoreV1().ServiceAccounts(namespace)
		must[*corev1.ServiceAccount](test, "account")(accounts.Create(ctx, account, metav1.CreateOptions{}))
		request := must[*authenticationv1.TokenRequest](test, "token")(
			accounts.CreateToken(ctx, account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: request.Status.Token}}
		review = must[*authenticationv1.TokenReview](test, "review")(
			client.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{}))
		if review.Status.User.Username != "system:serviceaccount:default:builder" {
			test.Error("the token is of", review.Status)
		}

		signing := &certificatesv1.CertificateSigningRequest{}
		made(test, signing)
		requests := client.CertificatesV1().CertificateSigningRequests()
		signing = must[*certificatesv1.CertificateSigningRequest](test, "create")(requests.Create(ctx, signing, metav1.CreateOptions{}))
		signing.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Tested",
		}}
		signing = must[*certificatesv1.CertificateSigningRequest](test, "approval")(
			requests.UpdateApproval(ctx, signing.Name, signing, metav1.UpdateOptions{}))
		if len(signing.Status.Conditions) != 1 {
			test.Error("approved:", signing.Status)
		}
	})
}

func exampleOf(test *testing.T, kind string) *unstructured.Unstructured {
	for kindOf, example := range readExamples(test) {
		if kindOf.Kind == kind {
			return example
		}
	}
	test.Fatal(kind, "has no example")
	return nil
}
