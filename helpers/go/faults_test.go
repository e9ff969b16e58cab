package skiff_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	skiff "github.com/kubeskiff/kubeskiff/helpers/go"
)

// faults are of each shape, with what is sent of it.
var faults = map[string]struct {
	fault skiff.Fault
	sent  string
}{
	"a watch that ends": {
		skiff.Fault{
			Match: skiff.Match{
				Verbs: []string{"watch"}, Group: new(string), Resource: "pods", Namespace: "a", Name: "b", User: "c", Path: "/api/*",
			},
			Watch: &skiff.WatchEnd{End: skiff.Expired, AfterEvents: 3, After: skiff.Duration(90 * time.Second)},
		},
		`{"match":{"verbs":["watch"],"group":"","resource":"pods","namespace":"a","name":"b","user":"c","path":"/api/*"},` +
			`"watch":{"end":"expired","afterEvents":3,"after":"1m30s"}}`,
	},
	"an error": {
		skiff.Fault{
			Match: skiff.Match{Subresource: new(string)},
			Delay: skiff.Duration(time.Millisecond),
			Error: &skiff.Failure{Code: http.StatusTooManyRequests, Message: "slow down", RetryAfterSeconds: 3},
		},
		`{"match":{"subresource":""},"delay":"1ms","error":{"code":429,"message":"slow down","retryAfterSeconds":3}}`,
	},
	"one of two errors": {
		skiff.Fault{Skip: 1, Times: 2, Error: &skiff.Failure{Code: http.StatusGone, Reason: "Gone"}},
		`{"skip":1,"times":2,"error":{"code":410,"reason":"Gone"}}`,
	},
	"a lost answer": {
		skiff.Fault{Lose: skiff.LostAnswer, Probability: 0.5, Seed: 7},
		`{"probability":0.5,"seed":7,"lose":"answer"}`,
	},
	"a lost request":     {skiff.Fault{Lose: skiff.LostRequest}, `{"lose":"request"}`},
	"a delay":            {skiff.Fault{Delay: skiff.Duration(250 * time.Microsecond)}, `{"delay":"250µs"}`},
	"a stale list":       {skiff.Fault{Stale: 5}, `{"stale":5}`},
	"a conflict":         {skiff.Fault{Conflict: true}, `{"conflict":true}`},
	"a watch at its end": {skiff.Fault{Watch: &skiff.WatchEnd{End: skiff.Closed}}, `{"watch":{"end":"closed"}}`},
	"a watch cut":        {skiff.Fault{Watch: &skiff.WatchEnd{End: skiff.Cut}}, `{"watch":{"end":"cut"}}`},
	"a watch stalled":    {skiff.Fault{Watch: &skiff.WatchEnd{End: skiff.Stalled}}, `{"watch":{"end":"stalled"}}`},
}

func TestFaultsAreWrittenAsTheServerReadsThem(t *testing.T) {
	for name, one := range faults {
		if sent, err := json.Marshal(one.fault); err != nil || string(sent) != one.sent {
			t.Errorf("%s: %s, not %s: %v", name, sent, one.sent, err)
		}
	}
}

func TestFaultsSayAllThatTheServerTakes(t *testing.T) {
	plane := skiff.New(t)
	for name, one := range faults {
		t.Run(name, func(t *testing.T) {
			injected := plane.Inject(t, one.fault)
			if hits, err := injected.Hits(); err != nil || hits != 0 {
				t.Errorf("it was met %d times: %v", hits, err)
			}
		})
	}
}
