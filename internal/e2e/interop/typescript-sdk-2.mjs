import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';
import { failure, must, run, yes } from './talk.mjs';
import { exercise, write } from './typescript-sdk.mjs';

async function stepUp({ provider, client, signInAgain }) {
  delete provider.kept.url;
  const error = await failure(client.callTool(write), 'a call without its permission');
  must(error instanceof UnauthorizedError && provider.kept.url, `the step-up: ${error.stack}`);
  must(provider.kept.url.searchParams.get('scope').split(' ').includes('contacts:write'), 'it does not ask for what it lacks');
  await signInAgain();
  must(!(await client.callTool(write)).isError, 'upsert_contact is refused');
  yes('step-up');
}

await run(() =>
  exercise('TypeScript SDK 2', {
    Client,
    Transport: StreamableHTTPClientTransport,
    Unauthorized: UnauthorizedError,
    options: { versionNegotiation: { mode: 'auto' } }, // the revision of 2026, which we speak
    finish: (transport, location) => transport.finishAuth(location.searchParams), // iss is checked (RFC 9207)
    stepUp,
  }),
);
