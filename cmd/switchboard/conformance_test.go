//go:build conformance

//lint:file-ignore SA1019 the suite asks for what the protocol has deprecated: logging, sampling, roots

package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/mcp"
)

// TestMain makes the test binary the product: the same commands and settings, the same way from them to the listener.
// Only the MCP server offers more, which the conformance suite asks for by name.
func TestMain(*testing.M) {
	os.Exit((&commands{Serve: serveCommand{fixtures: everything()}}).main())
}

// The scopes that fixtures need: reading is let through by one, tools by another.
const (
	toRead = "contacts:read"
	toCall = "contacts:write"
)

// fixture is a tool of the suite.
type fixture struct {
	name, doc string
	schema    string
	speaks    bool
	run       sdk.ToolHandler
}

// everything is what the suite's scenarios name, with the content that they expect.
func everything() *mcp.Fixtures {
	var server *sdk.Server // when the fixtures are on it
	tools := slices.Concat(contentTools(), speakingTools(), askingTools(), statefulTools(), changingTools(func() *sdk.Server { return server }))
	f := &mcp.Fixtures{
		Options: func(o *sdk.ServerOptions) {
			o.Capabilities = &sdk.ServerCapabilities{
				Tools: &sdk.ToolCapabilities{ListChanged: true}, Prompts: &sdk.PromptCapabilities{ListChanged: true},
				Resources: &sdk.ResourceCapabilities{Subscribe: true}, Logging: &sdk.LoggingCapabilities{},
			}
			o.CompletionHandler = func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
				return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}, nil
			}
			o.SubscribeHandler = func(context.Context, *sdk.SubscribeRequest) error { return nil }
			o.UnsubscribeHandler = func(context.Context, *sdk.UnsubscribeRequest) error { return nil }
		},
		Tools:   map[string]mcp.Fixture{},
		Methods: map[string]string{},
	}
	for _, method := range []string{
		"prompts/get", "resources/read", "completion/complete", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen",
	} {
		f.Methods[method] = toRead
	}
	for _, t := range tools {
		f.Tools[t.name] = mcp.Fixture{Scope: toCall, Speaks: t.speaks}
	}
	f.Add = func(s *sdk.Server) {
		server = s
		for _, t := range tools {
			s.AddTool(&sdk.Tool{Name: t.name, Description: t.doc, InputSchema: json.RawMessage(t.schema)}, t.run)
		}
		addPrompts(s)
		addResources(s)
	}
	return f
}

const anything = `{"type":"object"}`

func said(format string, args ...any) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}, nil
}

// shows is a tool that always has the same content.
func shows(name, doc string, content ...sdk.Content) fixture {
	return fixture{name: name, doc: doc, schema: anything, run: func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: content}, nil
	}}
}

func contentTools() []fixture {
	text, picture := &sdk.TextContent{Text: "A text."}, &sdk.ImageContent{Data: pixel(), MIMEType: "image/png"}
	embedded := func(uri string) sdk.Content {
		return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "An embedded resource."}}
	}
	return []fixture{
		shows("test_simple_text", "Returns a text.", text),
		shows("test_image_content", "Returns a picture.", picture),
		shows("test_audio_content", "Returns a sound.", &sdk.AudioContent{Data: silence(), MIMEType: "audio/wav"}),
		shows("test_embedded_resource", "Returns a resource.", embedded("test://embedded-resource")),
		shows("test_multiple_content_types", "Returns content of several kinds.", text, picture, embedded("test://embedded-in-multiple")),
		shows("test_streaming_elicitation", "Returns a text and asks nobody.", text),
		{name: "test_error_handling", doc: "Fails.", schema: anything, run: func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			r, err := said("This tool fails on purpose.")
			r.IsError = true
			return r, err
		}},
		{name: "json_schema_2020_12_tool", doc: "Has a schema with the words of JSON Schema 2020-12.", schema: wideSchema, run: func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return said("called with %s", r.Params.Arguments)
		}},
		{name: "test_x_mcp_header", doc: "Has an argument that clients repeat in a header.", schema: mirroredSchema, run: func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return said("called with %s", r.Params.Arguments)
		}},
		{name: "test_missing_capability", doc: "Needs a client that can sample.", schema: anything, run: func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if can := r.ClientCapabilities(); can != nil && can.Sampling != nil {
				return said("The client can sample.")
			}
			data, err := json.Marshal(sdk.MissingRequiredClientCapabilityData{RequiredCapabilities: &sdk.ClientCapabilities{Sampling: &sdk.SamplingCapabilities{}}})
			if err != nil {
				return nil, err
			}
			return nil, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "the client cannot sample", Data: data}
		}},
	}
}

// The schemas are the suite's: it looks for these words in tools/list.
const (
	wideSchema = `{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false,
		"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
		"properties": {
			"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
			"contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}
		},
		"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
		"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
		"then": {"required": ["phone"]}, "else": {"required": ["email"]}
	}`
	mirroredSchema = `{"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "level": {"type": "integer"}}}`
)

// speakingTools send notifications while they run.
func speakingTools() []fixture {
	log := func(ctx context.Context, r *sdk.CallToolRequest, lines ...string) error {
		for _, line := range lines {
			if err := r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: line}); err != nil {
				return err
			}
		}
		return nil
	}
	return []fixture{
		{name: "test_tool_with_logging", doc: "Logs while it runs.", schema: anything, speaks: true, run: func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if err := log(ctx, r, "Tool execution started", "Tool processing data", "Tool execution completed"); err != nil {
				return nil, err
			}
			return said("It has logged.")
		}},
		{name: "test_logging_tool", doc: "Logs, for clients that asked for it.", schema: anything, speaks: true, run: func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if err := log(ctx, r, "test_logging_tool runs"); err != nil {
				return nil, err
			}
			return said("It has logged, if that was asked for.")
		}},
		{name: "test_tool_with_progress", doc: "Tells how far it is.", schema: anything, speaks: true, run: func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			token := r.Params.GetProgressToken()
			for _, done := range []float64{0, 50, 100} {
				if token == nil {
					break
				}
				if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100}); err != nil {
					return nil, err
				}
			}
			return said("It is done.")
		}},
	}
}

// changingTools change what the server lists; listening clients are told.
func changingTools(server func() *sdk.Server) []fixture {
	return []fixture{
		{name: "test_trigger_tool_change", doc: "Changes the list of tools.", schema: anything, run: func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			// Nobody may call it: the gate does not know it.
			server().AddTool(&sdk.Tool{Name: "test_comes_and_goes", Description: "Is listed and nothing more.", InputSchema: json.RawMessage(anything)},
				func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return said("It ran.") })
			told(ctx)
			return said("The list of tools has changed.")
		}},
		{name: "test_trigger_prompt_change", doc: "Changes the list of prompts.", schema: anything, run: func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			server().AddPrompt(&sdk.Prompt{Name: "test_comes_and_goes", Description: "Is listed and nothing more."}, prompts(&sdk.TextContent{Text: "Nothing."}))
			told(ctx)
			return said("The list of prompts has changed.")
		}},
	}
}

// told waits until clients have been told of a change, which the SDK does 10 ms later. It takes a stream that is opened
// meanwhile for one of an old client, and tells it what it did not ask for.
func told(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

// prompts is the handler of a prompt that is always the same.
func prompts(content ...sdk.Content) sdk.PromptHandler {
	return func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		r := &sdk.GetPromptResult{}
		for _, c := range content {
			r.Messages = append(r.Messages, &sdk.PromptMessage{Role: "user", Content: c})
		}
		return r, nil
	}
}

func addPrompts(s *sdk.Server) {
	text := func(format string, args ...any) sdk.Content {
		return &sdk.TextContent{Text: fmt.Sprintf(format, args...)}
	}
	s.AddPrompt(&sdk.Prompt{Name: "test_simple_prompt", Description: "A text."}, prompts(text("A prompt.")))
	s.AddPrompt(&sdk.Prompt{Name: "test_prompt_with_image", Description: "A picture."},
		prompts(&sdk.ImageContent{Data: pixel(), MIMEType: "image/png"}, text("What is this?")))
	s.AddPrompt(&sdk.Prompt{Name: "test_prompt_with_arguments", Description: "A text with two arguments.", Arguments: []*sdk.PromptArgument{
		{Name: "arg1", Description: "The first.", Required: true}, {Name: "arg2", Description: "The second.", Required: true},
	}}, func(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return prompts(text("arg1='%s', arg2='%s'", r.Params.Arguments["arg1"], r.Params.Arguments["arg2"]))(ctx, r)
	})
	s.AddPrompt(&sdk.Prompt{Name: "test_prompt_with_embedded_resource", Description: "A resource.", Arguments: []*sdk.PromptArgument{
		{Name: "resourceUri", Description: "Which.", Required: true},
	}}, func(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		resource := &sdk.ResourceContents{URI: r.Params.Arguments["resourceUri"], MIMEType: "text/plain", Text: "An embedded resource."}
		return prompts(&sdk.EmbeddedResource{Resource: resource}, text("Read it."))(ctx, r)
	})
	s.AddPrompt(&sdk.Prompt{Name: "test_input_required_result_prompt", Description: "A text that asks for its context first."},
		func(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			if content, ok := accepted(r.Params.InputResponses, "user_context"); ok {
				return prompts(text("context: %v", content["context"]))(ctx, r)
			}
			return &sdk.GetPromptResult{InputRequests: sdk.InputRequestMap{"user_context": ask("What is it about?", "context", "string")}}, nil
		})
}

func addResources(s *sdk.Server) {
	reads := func(mime, text string, blob []byte) sdk.ResourceHandler {
		return func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: mime, Text: text, Blob: blob}}}, nil
		}
	}
	for _, r := range []struct {
		name, mime, text string
		blob             []byte
	}{{"static-text", "text/plain", "A text.", nil}, {"static-binary", "image/png", "", pixel()}, {"watched-resource", "text/plain", "A text.", nil}} {
		s.AddResource(&sdk.Resource{Name: r.name, Description: "For the conformance suite.", MIMEType: r.mime, URI: "test://" + r.name}, reads(r.mime, r.text, r.blob))
	}
	s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "template", Description: "One for each id.", MIMEType: "application/json", URITemplate: "test://template/{id}/data"},
		func(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			id, _, _ := strings.Cut(strings.TrimPrefix(r.Params.URI, "test://template/"), "/")
			text, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
			if err != nil {
				return nil, err
			}
			return reads("application/json", string(text), nil)(ctx, r)
		})
}

// ask is a form with one field.
func ask(question, field, kind string) *sdk.ElicitParams {
	return &sdk.ElicitParams{Message: question, RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{field: map[string]any{"type": kind}}, "required": []string{field},
	}}
}

func sample(question string) *sdk.CreateMessageParams {
	return &sdk.CreateMessageParams{MaxTokens: 50, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: question}}}}
}

// accepted is what a person filled in, when they did.
func accepted(responses sdk.InputResponseMap, key string) (map[string]any, bool) {
	r, ok := responses[key].(*sdk.ElicitResult)
	if !ok || r.Action != "accept" {
		return nil, false
	}
	return r.Content, true
}

// sampled is what the client's model wrote.
func sampled(responses sdk.InputResponseMap, key string) (string, bool) {
	r, ok := responses[key].(*sdk.CreateMessageWithToolsResult)
	if !ok {
		return "", false
	}
	for _, c := range r.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			return text.Text, true
		}
	}
	return "", true
}

// needs is a result that asks the client for more.
func needs(state string, requests sdk.InputRequestMap) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{Content: []sdk.Content{}, InputRequests: requests, RequestState: state}, nil
}

// askingTools ask their client: in the answer, as 2026-07-28 has it, or with a request of their own, as the revisions
// before it do. The second cannot be done by a server without sessions, which says so.
func askingTools() []fixture {
	asks := func(name string, form *sdk.ElicitParams) fixture {
		return fixture{name: name, doc: "Asks the person.", schema: anything, run: func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			answer, err := r.Session.Elicit(ctx, form)
			if err != nil {
				return unable(err)
			}
			return said("action=%s, content=%v", answer.Action, answer.Content)
		}}
	}
	return []fixture{
		asks("test_elicitation", ask("What is your name?", "username", "string")),
		asks("test_elicitation_sep1034_defaults", &sdk.ElicitParams{Message: "Look at these.", RequestedSchema: json.RawMessage(defaultsForm)}),
		asks("test_elicitation_sep1330_enums", &sdk.ElicitParams{Message: "Choose.", RequestedSchema: json.RawMessage(enumsForm)}),
		{name: "test_sampling", doc: "Asks the client's model.", schema: anything, run: func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			answer, err := r.Session.CreateMessage(ctx, sample("A question."))
			if err != nil {
				return unable(err)
			}
			return said("%v", answer.Content)
		}},
		{name: "test_input_required_result_elicitation", doc: "Asks the person for a name.", schema: anything, run: func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if content, ok := accepted(r.Params.InputResponses, "user_name"); ok && content["name"] != nil {
				return said("Hello, %v!", content["name"])
			}
			return needs("", sdk.InputRequestMap{"user_name": ask("What is your name?", "name", "string")})
		}},
		{name: "test_input_required_result_sampling", doc: "Asks the client's model.", schema: anything, run: func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if text, ok := sampled(r.Params.InputResponses, "capital_question"); ok {
				return said("The model says: %s", text)
			}
			return needs("", sdk.InputRequestMap{"capital_question": sample("What is the capital of France?")})
		}},
		{name: "test_input_required_result_list_roots", doc: "Asks the client for its roots.", schema: anything, run: func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if roots, ok := r.Params.InputResponses["client_roots"].(*sdk.ListRootsResult); ok {
				return said("%d roots", len(roots.Roots))
			}
			return needs("", sdk.InputRequestMap{"client_roots": &sdk.ListRootsParams{}})
		}},
		{name: "test_input_required_result_capabilities", doc: "Asks for what the client can do.", schema: anything, run: asksWhatItCan},
	}
}

func unable(err error) (*sdk.CallToolResult, error) {
	r, _ := said("The client cannot be asked: %v", err)
	r.IsError = true
	return r, nil
}

// asksWhatItCan asks only for what the client declared.
func asksWhatItCan(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	can := r.ClientCapabilities()
	if len(r.Params.InputResponses) > 0 || can == nil {
		return said("There is nothing to ask.")
	}
	requests := sdk.InputRequestMap{}
	if can.Elicitation != nil {
		requests["user_name"] = ask("What is your name?", "name", "string")
	}
	if can.Sampling != nil {
		requests["greeting"] = sample("Greet them.")
	}
	if can.RootsV2 != nil {
		requests["client_roots"] = &sdk.ListRootsParams{}
	}
	if len(requests) == 0 {
		return said("The client can do nothing.")
	}
	return needs("", requests)
}

// statefulTools take several rounds, and know by the state which one they are in.
func statefulTools() []fixture {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	confirmed := func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if r.Params.RequestState == "" {
			return needs(sealed(key, "confirm"), sdk.InputRequestMap{"confirm": ask("Is that right?", "ok", "boolean")})
		}
		if _, err := unsealed(key, r.Params.RequestState); err != nil {
			return nil, err
		}
		if _, ok := accepted(r.Params.InputResponses, "confirm"); !ok {
			return said("It was not confirmed.")
		}
		return said("state-ok: it was confirmed")
	}
	return []fixture{
		{name: "test_input_required_result_request_state", doc: "Asks for a confirmation.", schema: anything, run: confirmed},
		{name: "test_input_required_result_tampered_state", doc: "Asks for a confirmation.", schema: anything, run: confirmed},
		{name: "test_input_required_result_multiple_inputs", doc: "Asks for three things at once.", schema: anything, run: func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			name, named := accepted(r.Params.InputResponses, "user_name")
			greeting, greeted := sampled(r.Params.InputResponses, "greeting")
			if roots, ok := r.Params.InputResponses["client_roots"].(*sdk.ListRootsResult); ok && named && greeted {
				return said("%s %v, %d roots", greeting, name["name"], len(roots.Roots))
			}
			return needs(sealed(key, "three"), sdk.InputRequestMap{
				"user_name": ask("What is your name?", "name", "string"), "greeting": sample("Greet them."), "client_roots": &sdk.ListRootsParams{},
			})
		}},
		{name: "test_input_required_result_multi_round", doc: "Asks twice.", schema: anything, run: func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if r.Params.RequestState == "" {
				return needs(sealed(key, "first"), sdk.InputRequestMap{"step1": ask("What is your name?", "name", "string")})
			}
			state, err := unsealed(key, r.Params.RequestState)
			if err != nil {
				return nil, err
			}
			if first, ok := accepted(r.Params.InputResponses, "step1"); ok && state == "first" {
				return needs(sealed(key, fmt.Sprint(first["name"])), sdk.InputRequestMap{"step2": ask("Which colour do you like?", "color", "string")})
			}
			second, _ := accepted(r.Params.InputResponses, "step2")
			return said("%s likes %v", state, second["color"])
		}},
	}
}

// sealed is a state that only this process can have made.
func sealed(key []byte, state string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(state))
	return state + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func unsealed(key []byte, sent string) (string, error) {
	end := strings.LastIndex(sent, ".")
	if end < 0 || !hmac.Equal([]byte(sealed(key, sent[:end])), []byte(sent)) {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the request state is not one of this server"}
	}
	return sent[:end], nil
}

const (
	defaultsForm = `{"type": "object", "properties": {
		"name": {"type": "string", "default": "John Doe"}, "age": {"type": "integer", "default": 30}, "score": {"type": "number", "default": 95.5},
		"status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"}, "verified": {"type": "boolean", "default": true}
	}}`
	enumsForm = `{"type": "object", "properties": {
		"untitledSingle": {"type": "string", "enum": ["option1", "option2"]},
		"titledSingle": {"type": "string", "oneOf": [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]},
		"legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
		"untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2"]}},
		"titledMulti": {"type": "array", "items": {"anyOf": [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]}}
	}}`
)

// pixel is a picture.
func pixel() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewRGBA(image.Rect(0, 0, 1, 1))); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// silence is a sound of one sample.
func silence() []byte {
	return []byte("RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x02\x00\x00\x00\x00\x00")
}
