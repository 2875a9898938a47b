import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { auth, UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { failure, must, no, run, setup } from './talk.mjs';
import { exercise, write } from './typescript-sdk.mjs';

// It takes a refresh token, where it has one, for the answer to every challenge. What it got is as narrow as before,
// so it gives up. An app gets on by signing in anew with what the challenge asked for.
async function stepUp({ provider, client, signInAgain }) {
  const error = await failure(client.callTool(write), 'a call without its permission');
  must(error.code === 403 && error.message.includes('after trying upscoping'), `the step-up: ${error.stack}`);
  provider.invalidateCredentials('tokens');
  const result = await auth(provider, { serverUrl: setup.resource, scope: 'contacts:read contacts:write org:read' });
  must(result === 'REDIRECT', `signing in anew: ${result}`);
  await signInAgain();
  must(!(await client.callTool(write)).isError, 'upsert_contact is refused');
  no('step-up', 'answers the challenge with a refresh, which cannot widen anything; an app that signs in anew with the scopes of the challenge gets on');
}

await run(() =>
  exercise('TypeScript SDK 1', {
    Client,
    Transport: StreamableHTTPClientTransport,
    Unauthorized: UnauthorizedError,
    finish: (transport, location) => transport.finishAuth(location.searchParams.get('code')),
    stepUp,
  }),
);
