package envtest

import (
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Two API servers that give addresses and ports to services at the same time, until there are none, give none twice.
func TestNoAddressIsGivenTwice(test *testing.T) {
	const ports = 24
	flags := map[string]string{"service-cluster-ip-range": "10.7.0.0/26", "service-node-port-range": fmt.Sprintf("30100-%d", 30100+ports-1)}
	environment := &envtest.Environment{}
	for name, value := range flags {
		environment.ControlPlane.GetAPIServer().Configure().Set(name, value)
	}
	config := start(test, environment)
	config.QPS = -1
	clients := []client.Client{newClient(test, config), newClient(test, secondOn(test, environment, flags))}

	create := func(from client.Client, name string) (*corev1.Service, error) {
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}},
		}
		return service, from.Create(test.Context(), service)
	}
	var group sync.WaitGroup
	var lock sync.Mutex
	taken := map[string]string{}
	note := func(what, name string) {
		if other := taken[what]; other != "" {
			test.Error(what, "was given to", name, "and to", other)
		}
		taken[what] = name
	}
	for number := range ports {
		group.Go(func() {
			name := fmt.Sprint("service-", number)
			service, err := create(clients[number%len(clients)], name)
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				test.Error(name, err)
				return
			}
			note(service.Spec.ClusterIP, name)
			note(fmt.Sprint(service.Spec.Ports[0].NodePort), name)
		})
	}
	group.Wait()
	for _, from := range clients {
		if service, err := create(from, "one-too-many"); err == nil {
			test.Error("there is none left:", service.Spec.Ports)
		}
	}
	// What one gives back the other gives.
	first := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "service-0"}}
	if err := clients[0].Delete(test.Context(), first); err != nil {
		test.Fatal(err)
	}
	if _, err := create(clients[1], "next"); err != nil {
		test.Error(err)
	}
}
