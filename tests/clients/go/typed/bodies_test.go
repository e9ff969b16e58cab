package typed

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// bodies are those that went over the connections of a client.
type bodies struct {
	mutex sync.Mutex
	seen  map[string]bool
}

// overhear notes the bodies of all clients that are made of config from now on.
func overhear(config *rest.Config) *bodies {
	bodies := &bodies{seen: map[string]bool{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if request.Body != nil {
				bodies.note("request", request.Method, request.Header)
			}
			if err == nil {
				bodies.note("answer", request.Method, response.Header)
			}
			return response, err
		})
	})
	return bodies
}

func (b *bodies) note(what, method string, header http.Header) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.seen[fmt.Sprintf("%s to %s: %s", what, method, header.Get("Content-Type"))] = true
}

// other gives those that are neither in protobuf nor patches.
func (b *bodies) other() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	var other []string
	for body := range b.seen {
		if !strings.Contains(body, "application/vnd.kubernetes.protobuf") && !strings.HasPrefix(body, "request to PATCH") {
			other = append(other, body)
		}
	}
	return other
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) {
	return f(request)
}
