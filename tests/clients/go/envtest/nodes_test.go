package envtest

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// With `Node,RBAC`, a node reads what its pods need, and no more.
func TestNodesReadWhatTheirPodsNeed(test *testing.T) {
	environment := &envtest.Environment{}
	environment.ControlPlane.GetAPIServer().Configure().Set("authorization-mode", "Node", "RBAC")
	admin := newClient(test, start(test, environment))
	node, err := environment.AddUser(envtest.User{Name: "system:node:a", Groups: []string{"system:nodes"}}, nil)
	if err != nil {
		test.Fatal(err)
	}
	kubelet := newClient(test, node.Config())
	key := client.ObjectKey{Namespace: "default", Name: "needed"}
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	if err := admin.Create(test.Context(), &corev1.Secret{ObjectMeta: meta}); err != nil {
		test.Fatal(err)
	}
	denied := kubelet.Get(test.Context(), key, &corev1.Secret{})
	why := "no relationship found between node 'a' and this object"
	if !errors.IsForbidden(denied) || !strings.HasSuffix(denied.Error(), why) {
		test.Error(denied)
	}
	source := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: key.Name}}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		NodeName:   "a",
		Containers: []corev1.Container{{Name: "c", Image: "i"}},
		Volumes:    []corev1.Volume{{Name: "v", VolumeSource: source}},
	}}
	if err := admin.Create(test.Context(), pod); err != nil {
		test.Fatal(err)
	}
	if err := kubelet.Get(test.Context(), key, &corev1.Secret{}); err != nil {
		test.Error("a pod of the node names it:", err)
	}
	pods := &corev1.PodList{}
	if err := kubelet.List(test.Context(), pods); !errors.IsForbidden(err) {
		test.Error("they are not all the node's:", err)
	}
	if err := kubelet.List(test.Context(), pods, client.MatchingFields{"spec.nodeName": "a"}); err != nil || len(pods.Items) != 1 {
		test.Error(err, len(pods.Items))
	}
	for selected, allowed := range map[string]bool{"spec.nodeName=a": true, "spec.nodeName=b": false} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "list", Version: "v1", Resource: "pods", FieldSelector: &authorizationv1.FieldSelectorAttributes{RawSelector: selected},
			},
		}}
		if err := kubelet.Create(test.Context(), review); err != nil || review.Status.Allowed != allowed {
			test.Error(selected, review.Status, err)
		}
	}
	if err := admin.Delete(test.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		test.Fatal(err)
	}
	if err := kubelet.Get(test.Context(), key, &corev1.Secret{}); !errors.IsForbidden(err) {
		test.Error("the pod is gone:", err)
	}
}
