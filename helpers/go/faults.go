package skiff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Fault is what happens to requests that a test chooses. It does one of Error, Watch, Stale, Lose and Conflict, or has a Delay
// alone. See docs/faults.md for what each does.
type Fault struct {
	// Match says which requests it is for: all that is given must fit.
	Match Match `json:"match,omitzero"`
	// Skip is how many of them go by first.
	Skip int `json:"skip,omitempty"`
	// Times is how many meet it after that; 0 for all.
	Times int `json:"times,omitempty"`
	// Probability is how likely each of them meets it; 0 for always.
	Probability float64 `json:"probability,omitempty"`
	// Seed is what the chances begin with: the same one gives the same ones.
	Seed int `json:"seed,omitempty"`
	// Delay is how long they wait, before anything else.
	Delay Duration `json:"delay,omitempty"`
	// Error is what they are answered with.
	Error *Failure `json:"error,omitempty"`
	// Watch is how watches end, those too that are open.
	Watch *WatchEnd `json:"watch,omitempty"`
	// Stale has lists and watches at resourceVersion=0 begin with the state of so many changes ago.
	Stale int `json:"stale,omitempty"`
	// Lose cuts the connection in place of an answer.
	Lose Lost `json:"lose,omitempty"`
	// Conflict has the object written before the request: an update of what the client has read conflicts.
	Conflict bool `json:"conflict,omitempty"`
}

// Match says which requests a fault is for. What is nil or empty fits all.
type Match struct {
	Verbs []string `json:"verbs,omitempty"`
	// Group is the API group; "" is that of the core.
	Group *string `json:"group,omitempty"`
	// Resource is the plural name.
	Resource string `json:"resource,omitempty"`
	// Subresource is as in "status"; "" is the object itself.
	Subresource *string `json:"subresource,omitempty"`
	Namespace   string  `json:"namespace,omitempty"`
	Name        string  `json:"name,omitempty"`
	User        string  `json:"user,omitempty"`
	// Path is a path, or what paths begin with before a "*": this alone is for those that are not resources.
	Path string `json:"path,omitempty"`
}

// Failure is an error that Kubernetes answers with.
type Failure struct {
	// Code is 401, 403, 404, 409, 410, 429, 500, 503 or 504.
	Code int `json:"code"`
	// Reason chooses where a code has several: AlreadyExists, Gone, ServerTimeout.
	Reason string `json:"reason,omitempty"`
	// Message is there in place of Kubernetes' words.
	Message string `json:"message,omitempty"`
	// RetryAfterSeconds is when the client may try again.
	RetryAfterSeconds int `json:"retryAfterSeconds,omitempty"`
}

// WatchEnd is how and when a watch ends.
type WatchEnd struct {
	End         End      `json:"end"`
	AfterEvents int      `json:"afterEvents,omitempty"`
	After       Duration `json:"after,omitempty"`
}

// End is how a watch ends.
type End string

const (
	// Closed is as at the time-out of a watch.
	Closed End = "closed"
	// Cut breaks the connection.
	Cut End = "cut"
	// Stalled has nothing more come, until the fault is removed.
	Stalled End = "stalled"
	// Expired is an ERROR event with 410.
	Expired End = "expired"
)

// Lost is what a connection that is cut takes along.
type Lost string

const (
	// LostRequest has nothing done.
	LostRequest Lost = "request"
	// LostAnswer has all done.
	LostAnswer Lost = "answer"
)

// Duration is a [time.Duration] that is written as text.
type Duration time.Duration

// MarshalText writes it as [time.ParseDuration] reads it.
func (d Duration) MarshalText() ([]byte, error) {
	return []byte(time.Duration(d).String()), nil
}

// Injected is a fault that a control plane has.
type Injected struct {
	plane *ControlPlane
	path  string
}

// Inject adds a fault, which is removed when the test ends.
func (p *ControlPlane) Inject(t testing.TB, fault Fault) *Injected {
	t.Helper()
	injected, err := p.AddFault(fault)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := injected.Remove(); err != nil {
			t.Error(err)
		}
	})
	return injected
}

// AddFault adds a fault that belongs to no test.
func (p *ControlPlane) AddFault(fault Fault) (*Injected, error) {
	var added struct{ ID string }
	if err := p.ask(http.MethodPost, "/skiff/v1/faults", fault, &added); err != nil {
		return nil, err
	}
	return &Injected{plane: p, path: "/skiff/v1/faults/" + added.ID}, nil
}

// Hits is how often it took effect.
func (i *Injected) Hits() (int, error) {
	var fault struct{ Hits int }
	err := i.plane.ask(http.MethodGet, i.path, nil, &fault)
	return fault.Hits, err
}

// Remove has no request meet it any more; stalled watches go on. It may be called again.
func (i *Injected) Remove() error {
	return ignoreNotFound(i.plane.ask(http.MethodDelete, i.path, nil, nil))
}

// statusError is an answer that is not a success.
type statusError struct {
	Code    int
	Message string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("skiff answered %d: %s", e.Code, e.Message)
}

// ignoreNotFound is the error unless it says that something is gone that is not wanted.
func ignoreNotFound(err error) error {
	var status *statusError
	if errors.As(err, &status) && status.Code == http.StatusNotFound {
		return nil
	}
	return err
}

// ask sends JSON to what the control plane has beside the API of Kubernetes.
func (p *ControlPlane) ask(method, path string, body, answer any) error {
	client, err := rest.HTTPClientFor(p.Config)
	if err != nil {
		return err
	}
	var sent io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(encoded)
	}
	request, err := http.NewRequest(method, p.Config.Host+path, sent)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		status := &statusError{Code: response.StatusCode}
		// An answer that is not a Status has no message.
		_ = json.NewDecoder(response.Body).Decode(status)
		return status
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
