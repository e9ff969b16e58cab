package skiff

import (
	"net/http"
	"time"
)

// Clock is what time it is for a control plane: for creation times, tokens, events and leases. Nobody has to sleep.
type Clock struct {
	plane *ControlPlane
}

// Clock is that of the control plane alone.
func (p *ControlPlane) Clock() Clock {
	return Clock{plane: p}
}

// Now is the time that the clock shows.
func (c Clock) Now() (time.Time, error) {
	var shown struct{ Time time.Time }
	err := c.plane.ask(http.MethodGet, "/skiff/v1/clock", nil, &shown)
	return shown.Time, err
}

// Set has it show a time, and go on from there.
func (c Clock) Set(to time.Time) error {
	return c.put("time", to.UTC().Format(time.RFC3339Nano))
}

// Advance moves it on, or back.
func (c Clock) Advance(by time.Duration) error {
	return c.put("advance", by.String())
}

// Freeze has it stand still, until [Clock.Run].
func (c Clock) Freeze() error {
	return c.put("frozen", true)
}

// Run has it go on from what it shows.
func (c Clock) Run() error {
	return c.put("frozen", false)
}

// Reset makes it that of the machine.
func (c Clock) Reset() error {
	return c.plane.ask(http.MethodPut, "/skiff/v1/clock", struct{}{}, nil)
}

func (c Clock) put(field string, value any) error {
	return c.plane.ask(http.MethodPut, "/skiff/v1/clock", map[string]any{field: value}, nil)
}
